import { z } from "zod";
import { checkpointOperations } from "../checkpoints/operations.ts";
import type { Checkpoints } from "../checkpoints/service.ts";
import { upkeepOperations } from "../checkpoints/upkeep-operations.ts";
import { FilterFields } from "../checkpoints/wire-schemas.ts";
import { knowledgeImport } from "../knowledge/import-operation.ts";
import { knowledgeOperations } from "../knowledge/operations.ts";
import { ImportedKnowledge } from "../knowledge/read-records.ts";
import type { KnowledgeBase } from "../knowledge/service.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { runOperations } from "../runs/operations.ts";
import type { Runs } from "../runs/service.ts";
import { problemOf } from "./describe-issue.ts";
import { camelKey, toWire } from "./wire.ts";

/**
 * A program that calls the library is outside as much as one that calls over HTTP: what it gives is checked by the same schemas, with
 * fields named as the library names them. Fields that only the library has pass as they are.
 */

const checkpointInputs = inputsOf([...checkpointOperations, ...upkeepOperations], "checkpoint");
const knowledgeInputs = inputsOf(knowledgeOperations, "knowledge");

const RUNS = inputsOf(runOperations, "run");

const { project_path, keep_last, dry_run } = checkpointInputs.prune!.shape;
const { content: _, format: __, kind: ___, validate: ____, ...importFields } = knowledgeImport.input.shape;

const CHECKPOINTS: Readonly<Record<string, z.ZodObject>> = {
  ...checkpointInputs,
  prune: z.object({ project_path: project_path!, keep_last: keep_last!, dry_run: dry_run!, created_before: FilterFields.created_before }),
};

const KNOWLEDGE: Readonly<Record<string, z.ZodObject>> = {
  ...knowledgeInputs,
  search: knowledgeInputs.search!.extend({ scope: z.enum(["project", "shared", "both"]).optional() }),
  import: z.object({ ...importFields, records: z.array(ImportedKnowledge).max(LIMITS.importRecords) }),
};

export const checkedCheckpoints = (service: Checkpoints): Checkpoints => checked(service, CHECKPOINTS);
export const checkedRuns = (service: Runs): Runs => checked(service, RUNS);
export const checkedKnowledge = (service: KnowledgeBase): KnowledgeBase => checked(service, KNOWLEDGE);

function inputsOf(
  operations: readonly { readonly name: string; readonly input: z.ZodObject }[],
  noun: string,
): Record<string, z.ZodObject> {
  return Object.fromEntries(operations.map(({ name, input }) => [camelKey(name.slice(noun.length + 1)), input]));
}

function checked<Service extends object>(service: Service, inputs: Readonly<Record<string, z.ZodObject>>): Service {
  const calls = Object.entries(service).map(([verb, call]) => {
    const schema = inputs[verb];
    if (!schema) return [verb, call];
    const withCheck = async (input: unknown, ...rest: unknown[]) => {
      assertInput(schema, input);
      return call(input, ...rest);
    };
    return [verb, withCheck];
  });
  return Object.fromEntries(calls) as Service;
}

function assertInput(schema: z.ZodObject, input: unknown): void {
  const parsed = schema.safeParse(toWire(schema, input ?? {}));
  if (parsed.success) return;
  const issues = parsed.error.issues.slice(0, 10).map((issue) => ({ field: fieldOf(issue.path), problem: problemOf(issue) }));
  throw new CairnError("invalid_input", issues.map(({ field, problem }) => (field ? `${field}: ${problem}` : problem)).join("; "), {
    details: { issues },
  });
}

/** Only the field's own name is ours: below it may stand keys of the caller's. */
function fieldOf([field = "", ...inner]: readonly PropertyKey[]): string {
  return [camelKey(String(field)), ...inner.map(String)].join(".").slice(0, 200);
}
