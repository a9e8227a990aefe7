import { expect } from "vitest";
import { routeOf } from "../../src/http/routes.ts";
import type { Cairn } from "../../src/index.ts";
import { operations } from "../../src/operations/list.ts";
import { type Answer, api } from "../http/api.ts";

/** The shortest limit of any operation: a wait that does not derive from it shows as 504. */
const LIMIT_MS = 5_000;

const named = { system_id: "shop" };

/** One call of each class of operation, by what it needs from the database. */
export const CALLS = {
  project: {
    checkpoint_save: { summary: "Later" },
    checkpoint_list: {},
    checkpoint_get: { id: "checkpoint-1" },
    checkpoint_search: { query: "parse config" },
    checkpoint_resume: {},
    checkpoint_update: { id: "checkpoint-1", summary: "Changed" },
    checkpoint_delete: { id: "checkpoint-1" },
    knowledge_save: { kind: "faq", question: "How?", answer: "So." },
    knowledge_list: {},
    knowledge_search: { query: "how" },
    code_search: { query: "parse" },
    code_stats: {},
    embeddings_list: {},
  },
  runs: { run_list: {}, run_get: { run_id: "r" } },
  system: { system_get: named, system_snapshots: named, system_requeue: { ...named, component: "till", port: "orders" } },
} as const satisfies Record<string, Record<string, object>>;

export type Held = keyof typeof CALLS;

/** Calls every operation that uses this kind of database over HTTP, all under a short time limit. */
export async function callAll(cairn: Cairn, held: Held, project: string): Promise<Map<string, Answer>> {
  const short = operations.map((operation) => ({ ...operation, limits: { ...operation.limits, timeoutMs: LIMIT_MS } }));
  const http = await api({ cairn, operations: short });
  const answers = Object.entries(CALLS[held]).map(async ([name, input]): Promise<[string, Answer]> => {
    const operation = operations.find((one) => one.name === name)!;
    const route = routeOf(operation);
    const body = operation.hasProject ? { project_path: project, ...input } : { ...input };
    if (route.hasBody) return [name, await http.call(route.method, route.path, body)];
    return [name, await http.call(route.method, `${route.path}?${new URLSearchParams(body as Record<string, string>)}`)];
  });
  return new Map(await Promise.all(answers));
}

/** Checks that each answer says 503, when to retry, and why. Returns the operations that were answered otherwise. */
export function unlike503(answers: ReadonlyMap<string, Answer>): string[] {
  return [...answers].flatMap(([name, { status, headers, body }]) => {
    if (status !== 503) return [`${name}: ${status} ${JSON.stringify(body)}`];
    expect(headers.get("retry-after"), `${name}: ${body.error.message}`).toMatch(/^[1-9]\d*$/);
    expect(body.error.message, name).not.toMatch(/time limit/);
    return [];
  });
}
