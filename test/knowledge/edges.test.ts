import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { type Api, api } from "../http/api.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const A = "/srv/a";
const B = "/srv/b";

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("knowledge over HTTP on %s", (kind) => {
  let http: Api;
  let dataDir: string;
  let database: TestDatabase | undefined;
  const post = (verb: string, body: unknown, key?: string) =>
    http.call("POST", `/v1/knowledge/${verb}`, body, key ? { headers: { authorization: `Bearer ${key}` } } : {});
  const keyFor = async (...projects: string[]) =>
    (await http.call("POST", "/v1/key/create", { label: "test", access: "write", projects })).body.key as string;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-edges-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    http = await api({ cairn: await open({ storage: database?.url ?? kind, dataDir, embedder: [testEmbedder()] }) });
    for (const [place, id] of [
      [{ project_path: A }, "of-a"],
      [{ project_path: B }, "of-b"],
      [{ scope: "shared" }, "of-all"],
    ] as const)
      expect((await post("save", { ...place, id, question: "how to deploy", answer: `secret of ${id}` })).status).toBe(200);
  });

  afterEach(async () => {
    await http.cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });

  it("keeps long answers within a budget, and reports how to get the rest", async () => {
    for (let i = 0; i < 12; i++) {
      const record = { id: `long-${i}`, question: `long ${i}`, answer: `${i} ${"step by step ".repeat(300)}` };
      expect((await post("save", { project_path: A, ...record })).status).toBe(200);
    }
    const found = (await post("search", { project_path: A, scope: "project", query: "long", top_k: 20, max_tokens: 1_000 })).body;
    expect(found.results.length).toBeLessThan(12);
    expect(found.results[0].knowledge.answer).toContain("… [cut; use knowledge_get]");
    expect(found.note).toMatch(/Limited to 1000 tokens: \d+ shortened, \d+ omitted\. Use knowledge_get/);
    expect(JSON.stringify(found.results.map(({ knowledge }: { knowledge: object }) => knowledge)).length).toBeLessThan(5_000);
    const ids: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { body } = await post("list", { project_path: A, limit: 100, max_tokens: 1_000, ...(cursor && { cursor }) });
      ids.push(...body.knowledge.map(({ id }: { id: string }) => id));
      cursor = body.next_cursor;
      if (!cursor) break;
      expect(body.note).toMatch(/shortened\. Use knowledge_get/);
    }
    expect(ids.sort()).toEqual(["of-a", ...Array.from({ length: 12 }, (_, i) => `long-${i}`)].sort());
    const whole = (await post("get", { project_path: A, id: "long-3" })).body;
    expect(whole.answer).toHaveLength(2 + 13 * 300);
  });

  it("keeps a project's key inside its project: nothing of another one or of the shared knowledge comes back", async () => {
    const key = await keyFor(A);
    const found = await post("search", { project_path: A, query: "how to deploy secret of-b of-all" }, key);
    expect(found.body.results.map((hit: { knowledge: { id: string } }) => hit.knowledge.id)).toEqual(["of-a"]);
    expect(found.body.scopes).toEqual(["project"]);
    const attempts = [{ project_path: B }, { scope: "shared" }, { project_path: A, scope: "shared" }, { project_path: B, scope: "shared" }];
    for (const place of attempts)
      for (const [verb, more] of [
        ["search", { query: "deploy" }],
        ["list", {}],
        ["get", { id: "of-all" }],
        ["update", { id: "of-all", answer: "x" }],
        ["delete", { id: "of-all" }],
        ["feedback", { id: "of-all", success: true }],
        ["save", { question: "q", answer: "a" }],
        ["import", { content: "[]", source: "x" }],
      ] as const) {
        const answer = await post(verb, { ...place, ...more }, key);
        expect(`${verb} ${JSON.stringify(place)} ${answer.status}`).toBe(`${verb} ${JSON.stringify(place)} 403`);
        expect(JSON.stringify(answer.body)).not.toContain("secret of");
      }
    for (const id of ["of-b", "of-all", "../b", "%", "' OR 1=1 --"])
      expect((await post("get", { project_path: A, id }, key)).status).toBe(404);
    expect((await post("list", { project_path: "shared" }, key)).status).toBe(400);
    const other = (await post("list", { project_path: B, limit: 1 })).body;
    expect((await post("list", { project_path: A, cursor: other.next_cursor ?? "x" }, key)).status).toBe(400);
  });

  it("opens the shared knowledge to a key that names it, and to no project with it", async () => {
    const key = await keyFor("shared", A);
    const found = await post("search", { project_path: A, query: "how to deploy" }, key);
    expect(found.body.results.map((hit: { knowledge: { id: string } }) => hit.knowledge.id).sort()).toEqual(["of-a", "of-all"]);
    expect((await post("feedback", { scope: "shared", id: "of-all", success: true }, key)).body).toMatchObject({
      usage_count: 1,
      successes: 1,
      success_rate: 2 / 3,
    });
    expect((await post("list", { project_path: B }, key)).status).toBe(403);
    const checkpoint = { project_path: "shared", summary: "x" };
    const saved = await http.call("POST", "/v1/checkpoint/save", checkpoint, { headers: { authorization: `Bearer ${key}` } });
    expect(saved.status).toBe(400);
  });

  it("reports in /health how ready the shared knowledge is", async () => {
    expect((await http.call("GET", "/health")).body).toMatchObject({ ready: true, knowledge: { records: 1, vectors: 1, ready: true } });
  });

  it("stays ready when the shared knowledge alone cannot be read, and reports it", async () => {
    const { cairn } = http;
    const broken = { ...cairn, knowledge: { ...cairn.knowledge, readiness: () => Promise.reject(new Error("damaged")) } };
    const { status, body } = await (await api({ cairn: broken })).call("GET", "/health");
    expect([status, body.ready, body.checks.knowledge.ok]).toEqual([200, true, false]);
  });

  it("verifies the vectors of knowledge, also of what is shared", async () => {
    const verified = await http.call("POST", "/v1/embeddings/verify", { scope: "shared", collection: "knowledge" });
    expect(verified.body).toEqual({ checked: 1, damaged: [], recomputed: 0, missing: 0, mirror_repaired: 0, damaged_records: [] });
    const key = await keyFor(A);
    const headers = { authorization: `Bearer ${key}` };
    expect((await http.call("POST", "/v1/embeddings/verify", { scope: "shared", collection: "knowledge" }, { headers })).status).toBe(403);
    expect((await http.call("POST", "/v1/embeddings/verify", { collection: "knowledge" })).status).toBe(400);
    expect((await http.call("POST", "/v1/database/check", { scope: "shared" })).body).toMatchObject({
      project_path: "shared",
      state: "sound",
    });
  });
});
