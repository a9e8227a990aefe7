import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { builtCommand } from "../cli/stage.ts";

/** The whole program of a host that knows only fetch. It prints its results as one line of JSON. */
const PROGRAM = `
const { Response: own } = globalThis;
const { open } = await import(process.env.LIBRARY);
const { httpHandler } = await import(process.env.HTTP);
const cairn = await open({ storage: "memory", embedder: { kind: "static" } });
const { key } = await cairn.keys.create({ label: "host", access: "write", projects: ["/p"] });
const handle = httpHandler({ cairn });
const call = async (method, path, body, headers = {}) => {
  const request = new Request("https://memory.example" + path, { method, headers: { "content-type": "application/json", ...headers }, body });
  const answer = await handle(request);
  return { status: answer.status, body: await answer.text(), isOwn: answer instanceof own };
};
const auth = { authorization: "Bearer " + key };
const checkpoint = JSON.stringify({ project_path: "/p", summary: "Parser done" });
const seen = {
  health: await call("GET", "/health"),
  stranger: await call("POST", "/v1/checkpoint/save", checkpoint),
  saved: await call("POST", "/v1/checkpoint/save", checkpoint, auth),
  found: await call("POST", "/v1/checkpoint/search", JSON.stringify({ project_path: "/p", query: "parser" }), auth),
  description: await call("GET", "/openapi.json"),
};
await cairn.close();
process.stdout.write(JSON.stringify(seen));
`;

it("answers requests where nothing may listen or connect", () => {
  const dist = resolve(builtCommand(), "../..");
  const support = resolve(import.meta.dirname, "../support");
  const guards = ["no-listening.cjs", "no-network.cjs"].flatMap((file) => ["--require", join(support, file)]);
  const { status, stdout, stderr } = spawnSync(process.execPath, [...guards, "--input-type=module", "--eval", PROGRAM], {
    encoding: "utf8",
    env: { LIBRARY: pathToFileURL(join(dist, "index.js")).href, HTTP: pathToFileURL(join(dist, "http/index.js")).href },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const { health, stranger, saved, found, description } = JSON.parse(stdout);
  expect([health, stranger, saved, found, description].map((answer) => answer.status)).toEqual([200, 401, 200, 200, 200]);
  expect(found.body).toContain("Parser done");
  expect(JSON.parse(description.body).paths).toHaveProperty("/v1/checkpoint/save");
  // The Node server replaces Response; that it is the host's own shows that none was loaded.
  expect([health, saved, found].every(({ isOwn }) => isOwn)).toBe(true);
});
