import type { AttackCaller } from "./callers.ts";
import { send } from "./client.ts";
import type { LiveTargets } from "./targets.ts";
import type { World } from "./world.ts";

/** Calls the server as the harness and returns the JSON of a success. */
export async function callAs(
  port: number,
  caller: AttackCaller,
  method: string,
  path: string,
  input?: unknown,
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by the harness, which fails where a field is missing
): Promise<any> {
  const headers = { "content-type": "application/json", ...caller.headers };
  const answer = await send(port, { method, path, headers, ...(input !== undefined && { body: JSON.stringify(input) }) });
  if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body}`);
  return JSON.parse(answer.body);
}

/** Makes the ids and cursors of the other project that only a running server knows. */
export async function findLiveTargets(port: number, harness: AttackCaller, { other }: World): Promise<LiveTargets> {
  const post = (path: string, input: object) => callAs(port, harness, "POST", path, input);
  const sent = await post("/index", { project_path: other, files: [{ path: "src/sent.ts", content: "export const sent = 1;\n" }] });
  await callAs(port, harness, "GET", `/index/jobs/${sent.job_id}?wait_ms=20000`);
  const pages = [
    await post("/v1/checkpoint/list", { project_path: other, limit: 1 }),
    await post("/v1/checkpoint/export", { project_path: other, limit: 1 }),
    await post("/v1/knowledge/list", { project_path: other, limit: 1 }),
    await post("/v1/run/list", { project: other, limit: 1 }),
  ];
  const { keys } = await callAs(port, harness, "GET", "/v1/key/list");
  const key = keys.find(({ projects }: { projects: string[] }) => projects.includes(other)).id;
  return { job: sent.job_id, key, cursors: pages.map(({ next_cursor }) => next_cursor) };
}
