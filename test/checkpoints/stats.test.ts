import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import { operations } from "../../src/operations/list.ts";
import { api, REMOTE } from "../http/api.ts";
import { testEmbedder } from "../support/embedders.ts";

it("shows counts, sizes and costs of the projects a caller may see, and of no other", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-stats-"));
  const cairn = await open({ dataDir, embedder: [testEmbedder({ model: "text-embedding-3-small" })] });
  for (const summary of ["One", "Two", "Two"]) await cairn.checkpoints.save({ projectPath: "/mine", summary });
  await cairn.checkpoints.save({ projectPath: "/theirs", summary: "One" });
  const { call } = await api({ cairn, operations });
  expect((await call("GET", "/v1/stats")).body.shared).toBeUndefined();
  await cairn.knowledge.save({ projectPath: "/mine", question: "One", answer: "1" });
  for (const question of ["One", "Two"]) await cairn.knowledge.save({ scope: "shared", question, answer: "1" });
  const { body } = await call("GET", "/v1/stats");
  expect(body.total).toBe(2);
  expect(body.projects.find((project: { project_path: string }) => project.project_path === "/mine")).toMatchObject({
    checkpoints: 3,
    knowledge: 1,
    vectors: 4,
    vectors_missing: 0,
    model: "text-embedding-3-small",
  });
  expect(body.shared).toMatchObject({ knowledge: 2, vectors: 2, vectors_missing: 0, model: "text-embedding-3-small" });
  for (const { bytes } of [...body.projects, body.shared]) expect(bytes).toBeGreaterThan(10_000);
  expect(body.embedding).toMatchObject({ cache_hits: 5, cache_misses: 2, cache_hit_ratio: 5 / 7, texts: 2 });
  expect(body.embedding.tokens).toBeGreaterThan(0);
  expect(body.embedding.dollars).toBeCloseTo((body.embedding.tokens * 0.02) / 1e6, 12);
  expect(body.embedding.saved_tokens).toBeGreaterThan(0);

  const { key } = await cairn.keys.create({ label: "one", access: "read", projects: ["/mine"] });
  const headers = { authorization: `Bearer ${key}` };
  const own = await call("GET", "/v1/stats", undefined, { headers, connection: REMOTE });
  expect(own.body.projects.map(({ project_path }: { project_path: string }) => project_path)).toEqual(["/mine"]);
  expect(own.body.shared).toBeUndefined();
  const other = await call("GET", "/v1/stats?of_project=/theirs", undefined, { headers, connection: REMOTE });
  expect(other.body).toMatchObject({ projects: [], total: 0 });
  await cairn.close();
  rmSync(dataDir, { recursive: true, force: true });
});
