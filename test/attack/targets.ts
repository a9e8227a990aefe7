import { z } from "zod";
import { exampleOf, type JsonSchema } from "../../src/http/example.ts";
import { nounOf } from "../../src/http/routes.ts";
import type { Operation } from "../../src/operations/operation.ts";
import { LURE, type World } from "./world.ts";

type Input = Record<string, unknown>;

/** Ids and cursors of the other project that only the running server gives out. */
export interface LiveTargets {
  readonly job: string;
  readonly key: string;
  readonly cursors: readonly string[];
}

/** Fields that select something in the other project, or that must hold a value of a certain form. */
function fieldValues({ other, file, ids }: World, live: LiveTargets, noun: string): Input {
  const idOf: Input = { checkpoint: ids.checkpoint, knowledge: ids.knowledge, code: live.job, key: live.key };
  return {
    project_path: other,
    of_project: other,
    id: idOf[noun] ?? "none",
    run_id: ids.run,
    system_id: ids.system,
    component: "none",
    port: "none",
    query: LURE,
    text: LURE,
    name: LURE,
    path: file,
    start_line: 1,
    paths: [file],
    files: [{ path: file, content: "export const replaced = 1;\n" }],
    summary: "Written by an attacker",
    question: "Written by an attacker?",
    answer: "Yes.",
    success: false,
    content: '[{"id":"x","question":"Written by an attacker?","answer":"Yes."}]',
    source: "attack.json",
    records: [],
    older_than: "2999-01-01T00:00:00Z",
    keep_last: 0,
    to: "postgres://127.0.0.1:1/none",
    dry_run: true,
    label: "made by an attacker",
    all_projects: true,
    access: "admin",
  };
}

/** Fields that an attack on this operation leaves out, since they exclude each other. */
const LEAVE_OUT: Readonly<Record<string, readonly string[]>> = {
  code_similar: ["path"],
  knowledge_import: ["dry_run"],
  checkpoint_prune: ["dry_run", "keep_last"],
  run_prune: ["run_id"],
};

/** An input that would succeed for a caller with the rights: it reads, changes or deletes what belongs to the other project. */
export function targetInput(operation: Operation, world: World, live: LiveTargets): Input {
  const schema = z.toJSONSchema(operation.input, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const example = exampleOf(schema) as Input;
  const values = fieldValues(world, live, nounOf(operation.name));
  const fields = Object.keys(operation.input.shape).filter((field) => field in values && !LEAVE_OUT[operation.name]?.includes(field));
  return { ...example, ...Object.fromEntries(fields.map((field) => [field, values[field]])) };
}

/** Names the field in which the operation takes the project, if it does. */
export function projectFieldOf(operation: Operation): string {
  return !operation.hasProject && "of_project" in operation.input.shape ? "of_project" : "project_path";
}
