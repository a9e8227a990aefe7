import { z } from "zod";
import { checkpointOperations } from "../checkpoints/operations.ts";
import { upkeepOperations } from "../checkpoints/upkeep-operations.ts";
import { FilterFields } from "../checkpoints/wire-schemas.ts";
import { knowledgeDeletionOperations } from "../knowledge/deletion-operations.ts";
import { knowledgeImport } from "../knowledge/import-operation.ts";
import { knowledgeOperations } from "../knowledge/operations.ts";
import { ImportedKnowledge } from "../knowledge/read-records.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { reviewOperations } from "../review/operations.ts";
import { runOperations } from "../runs/operations.ts";
import type { Cairn } from "./cairn.ts";
import { problemOf } from "./describe-issue.ts";
import { camelKey, toWire } from "./wire.ts";

const checkpointInputs = inputsOf([...checkpointOperations, ...upkeepOperations], "checkpoint");
const knowledgeInputs = inputsOf([...knowledgeOperations, ...knowledgeDeletionOperations], "knowledge");
const REVIEWS = inputsOf(reviewOperations, "review");
const runInputs = inputsOf(runOperations, "run");

const { project_path, keep_last, dry_run } = checkpointInputs.prune!.shape;
const { content: _, format: __, kind: ___, validate: ____, anchors: ________, ...importFields } = knowledgeImport.input.shape;

const CHECKPOINTS: Readonly<Record<string, z.ZodObject>> = {
  ...checkpointInputs,
  prune: z.object({ project_path: project_path!, keep_last: keep_last!, dry_run: dry_run!, created_before: FilterFields.created_before }),
};

const KNOWLEDGE: Readonly<Record<string, z.ZodObject>> = {
  ...knowledgeInputs,
  search: knowledgeInputs.search!.extend({ scope: z.enum(["project", "shared", "both"]).optional() }),
  import: z.object({ ...importFields, records: z.array(ImportedKnowledge).max(LIMITS.importRecords) }),
};

const { answer_json: _____, ...answerFields } = runInputs.answer!.shape;
const { state_json: ______, ...forkFields } = runInputs.fork!.shape;
const { input_json: _______, ...enqueueFields } = runInputs.enqueue!.shape;

/** A program passes values where the wire has JSON texts. */
const RUNS: Readonly<Record<string, z.ZodObject>> = {
  ...runInputs,
  answer: z.strictObject({ ...answerFields, answer: z.unknown().optional() }),
  fork: z.strictObject({ ...forkFields, state: z.unknown().optional() }),
  enqueue: z.strictObject({ ...enqueueFields, input: z.unknown().optional() }),
};

/** The service behind each one that validates its input. */
const unvalidated = new WeakMap<object, object>();

/**
 * Returns the services as a program sees them: each call is validated by the schema of its operation, and errors name fields as the
 * library does. Fields that only the library has pass unchanged.
 */
export function validateLibrary(services: Cairn): Cairn {
  const { checkpoints, knowledge, reviews, runs } = services;
  return {
    ...services,
    checkpoints: validateService(checkpoints, CHECKPOINTS),
    knowledge: validateService(knowledge, KNOWLEDGE),
    reviews: validateService(reviews, REVIEWS),
    runs: validateService(runs, RUNS),
  };
}

/** Returns the services behind the library, for surfaces: `invoke` has validated their input, and once is enough. */
export function servicesOf(library: Cairn): Cairn {
  const { checkpoints, knowledge, reviews, runs } = library;
  const records = { checkpoints: serviceOf(checkpoints), knowledge: serviceOf(knowledge), reviews: serviceOf(reviews) };
  return { ...library, ...records, runs: serviceOf(runs) };
}

/** A client of a server has none of its own for what the server does. */
function serviceOf<Service extends object | undefined>(service: Service): Service {
  return ((service && unvalidated.get(service)) ?? service) as Service;
}

function inputsOf(
  operations: readonly { readonly name: string; readonly input: z.ZodObject }[],
  noun: string,
): Record<string, z.ZodObject> {
  return Object.fromEntries(operations.map(({ name, input }) => [camelKey(name.slice(noun.length + 1)), input]));
}

function validateService<Service extends object>(service: Service, inputs: Readonly<Record<string, z.ZodObject>>): Service {
  const verbs = Object.entries(service).map(([verb, call]) => {
    const schema = inputs[verb];
    if (!schema) return [verb, call];
    const validated = async (input: unknown, ...rest: unknown[]) => {
      assertInput(schema, input);
      return call(input, ...rest);
    };
    return [verb, validated];
  });
  const validating = Object.fromEntries(verbs) as Service;
  unvalidated.set(validating, service);
  return validating;
}

function assertInput(schema: z.ZodObject, input: unknown): void {
  const parsed = schema.safeParse(toWire(schema, input ?? {}));
  if (parsed.success) return;
  const issues = parsed.error.issues.slice(0, 10).map((issue) => ({ field: fieldOf(issue.path), problem: problemOf(issue) }));
  throw new CairnError("invalid_input", issues.map(({ field, problem }) => (field ? `${field}: ${problem}` : problem)).join("; "), {
    details: { issues },
  });
}

/** Names a field as the library does. Only its first part is ours: below it may stand keys of the caller. */
function fieldOf([field = "", ...inner]: readonly PropertyKey[]): string {
  return [camelKey(String(field)), ...inner.map(String)].join(".").slice(0, 200);
}
