import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { type Api, api } from "../http/api.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const A = "/srv/a";
const B = "their-project";
const FILES: Record<string, string> = {
  "src/retry.ts": `import { sleep } from "./sleep";\n\n/** Tries again, waiting longer each time. */\nexport async function retryWithBackoff(work: () => Promise<void>) {\n  for (let delay = 10; ; delay *= 2) {\n    try {\n      return await work();\n    } catch {\n      await sleep(delay);\n    }\n  }\n}\n`,
  "src/sleep.ts": "export function sleep(ms: number) {\n  return new Promise((resolve) => setTimeout(resolve, ms));\n}\n",
  "src/queue.ts": `import { retryWithBackoff } from "./retry";\n\nexport class JobQueue {\n  async run(job: () => Promise<void>) {\n    await retryWithBackoff(job);\n  }\n}\n`,
  "test/retry.test.ts": `import { retryWithBackoff } from "../src/retry";\n\nit("retries with backoff", async () => {\n  await retryWithBackoff(async () => {});\n});\n`,
  "lib/parse.py": "def parse_config(path):\n    with open(path) as file:\n        return file.read()\n",
};

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("code over HTTP on %s", (kind) => {
  let http: Api;
  let dataDir: string;
  let database: TestDatabase | undefined;
  const call = (method: string, path: string, body?: unknown, key?: string) =>
    http.call(method, path, body, key ? { headers: { authorization: `Bearer ${key}` } } : {});
  const post = async (path: string, body: object) => {
    const { status, body: answer } = await call("POST", path, { project_path: A, ...body });
    expect(status, JSON.stringify(answer)).toBe(200);
    return answer;
  };
  const rejection = async (path: string, body: object) => {
    const { status, body: answer } = await call("POST", path, { project_path: A, ...body });
    expect(status, JSON.stringify(answer)).toBe(400);
    return answer.error.message as string;
  };

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-code-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    http = await api({ cairn: await open({ storage: database?.url ?? kind, dataDir, embedder: [testEmbedder()] }) });
    for (const projectPath of [A, B]) {
      const files = Object.entries(FILES).map(([path, content]) => ({
        path,
        content: projectPath === A ? content : `// secret of theirs\n${content}`,
      }));
      await http.cairn.code.indexBatch({ projectPath, files });
    }
  });
  afterAll(async () => {
    await http.cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });

  it("answers a search with file, exact lines, symbol, and why it matched", async () => {
    const { results, degraded, note } = await post("/search", { query: "retryWithBackoff" });
    const [best] = results;
    expect(best).toMatchObject({
      path: "src/retry.ts",
      end_line: 12,
      symbol: "retryWithBackoff",
      kind: "function",
      language: "typescript",
      score: 1,
    });
    expect(best.text.split("\n").at(-1)).toBe("}");
    expect(best.found).toMatchObject({ definition: true, keyword: expect.any(Number) });
    expect(best.content_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(degraded).toEqual([]);
    expect(note).toBeUndefined();
    const method = await post("/search", { query: "JobQueue run job" });
    expect(method.results.map((hit: { path: string }) => hit.path)).toContain("src/queue.ts");
  });

  it("filters by language, kind, glob and time, in each mode, and gives real lines around a hit", async () => {
    const paths = async (body: object) => (await post("/search", body)).results.map((hit: { path: string }) => hit.path);
    expect(await paths({ query: "file path", languages: ["python"] })).toEqual(["lib/parse.py"]);
    expect(await paths({ query: "setTimeout", mode: "keyword" })).toEqual(["src/sleep.ts"]);
    expect((await paths({ query: "setTimeout resolve", mode: "semantic" }))[0]).toBe("src/sleep.ts");
    expect(await paths({ query: "retryWithBackoff", glob: "!src/**" })).not.toContain("src/retry.ts");
    expect(await paths({ query: "JobQueue", kinds: ["function"] })).not.toContain("src/queue.ts");
    expect(await paths({ query: "sleep", changed_since: "2999-01-01T00:00:00+02:00" })).toEqual([]);
    expect((await paths({ query: "retries with backoff", include: ["test"] }))[0]).toBe("test/retry.test.ts");
    const around = await post("/search", { query: "parse_config", top_k: 1, context_lines: 3 });
    expect(around.results[0]).toMatchObject({ path: "lib/parse.py", text_start_line: 1, text: FILES["lib/parse.py"]!.trimEnd() });
  });

  it("explains the weights of both rankings, lower for the semantic one if the query is a symbol", async () => {
    const { weights } = await post("/search", { query: "retry a call with backoff", explain: true });
    expect(weights).toEqual({
      semantic: expect.any(Number),
      coverage: expect.any(Number),
      keyword_lead: expect.any(Number),
      matched: expect.any(Number),
    });
    const symbol = await post("/search", { query: "retryWithBackoff", explain: true });
    expect(symbol.weights.semantic).toBeLessThanOrEqual(0.3);
    expect(symbol.weights.semantic).toBeLessThan(weights.semantic);
    expect((await post("/search", { query: "retry a call with backoff" })).weights).toBeUndefined();
    expect((await post("/search", { query: "retry", mode: "keyword", explain: true })).weights).toBeUndefined();
  });

  it("stays within max_tokens, and notes how to get the rest", async () => {
    const { results, note } = await post("/search", { query: "retry with backoff sleep parse queue", max_tokens: LIMITS.answerTokensMin });
    expect(results.length).toBeGreaterThan(0);
    expect(results.length).toBeLessThan(Object.keys(FILES).length);
    expect(note).toMatch(/more .*max_tokens/);
    const long = Array.from({ length: 200 }, (_, line) => `value_${line} = ${line}`).join("\n");
    await http.cairn.code.indexBatch({ projectPath: A, files: [{ path: "long.py", content: `${long}\n` }] });
    const first = await post("/context", { path: "long.py", max_tokens: 500 });
    const { end_line } = first.contexts[0];
    expect(first.note).toBe(`Cut at line ${end_line} of 200. Continue with path long.py and start_line ${end_line + 1}.`);
    const second = await post("/context", { path: "long.py", start_line: end_line + 1, max_tokens: 20_000 });
    expect(`${first.contexts[0].text}\n${second.contexts[0].text}`).toBe(long);
    expect(second.note).toBeUndefined();
  });

  it("returns the definitions and references of a symbol, also by its qualified name", async () => {
    const { definitions, references, total_references } = await post("/usages", { symbol: "retryWithBackoff" });
    expect(definitions).toMatchObject([
      {
        ...{ path: "src/retry.ts", line: 4, kind: "function", text: expect.stringContaining("retryWithBackoff") },
        content_hash: createHash("sha256").update(FILES["src/retry.ts"]!).digest("hex"),
      },
    ]);
    expect(references.map(({ path, line }: { path: string; line: number }) => `${path}:${line}`)).toEqual(
      expect.arrayContaining(["src/queue.ts:5", "test/retry.test.ts:4"]),
    );
    expect(total_references).toBe(references.length);
    expect((await post("/usages", { symbol: "JobQueue.run()" })).definitions).toMatchObject([
      { path: "src/queue.ts", line: 4, parents: ["JobQueue"] },
    ]);
    expect((await post("/usages", { symbol: "retryWithBackoff", limit: 1 })).note).toMatch(/Showing 1/);
    expect((await post("/usages", { symbol: "nowhere" })).note).toMatch(/No symbol .*nowhere/);
  });

  it("reads lines of a file, and whole definitions", async () => {
    const lines = await post("/context", { path: "src/retry.ts", start_line: 4, end_line: 5 });
    expect(lines.contexts).toMatchObject([{ start_line: 4, end_line: 5, text: FILES["src/retry.ts"]!.split("\n").slice(3, 5).join("\n") }]);
    const whole = await post("/context", { symbol: "JobQueue" });
    expect(whole.contexts[0].text).toContain("await retryWithBackoff(job);");
    for (const body of [{ path: "not/there.ts" }, { path: "src/retry.ts", start_line: 500 }, { symbol: "nowhere" }])
      expect((await call("POST", "/context", { project_path: A, ...body })).status).toBe(404);
  });

  it("finds what resembles a text, or a line of a file", async () => {
    const byText = await post("/similar", { text: "new Promise((resolve) => setTimeout(resolve, 5))" });
    expect(byText.results[0].path).toBe("src/sleep.ts");
    const byLine = await post("/similar", { path: "test/retry.test.ts", line: 4, top_k: 2 });
    expect(byLine.results).toHaveLength(2);
    expect(byLine.results.map((hit: { path: string }) => hit.path)).not.toContain("test/retry.test.ts");
    expect((await call("POST", "/similar", { project_path: A, path: "nowhere.ts" })).status).toBe(404);
  });

  it("refuses what cannot be meant, naming the field", async () => {
    expect(await rejection("/search", { query: "" })).toMatch(/query/);
    expect(await rejection("/search", { query: "x".repeat(LIMITS.longQuestionChars + 1) })).toMatch(/query/);
    expect(await rejection("/search", { query: "x", top_k: 0 })).toMatch(/top_k/);
    expect(await rejection("/search", { query: "x", top_k: 101 })).toMatch(/top_k/);
    expect(await rejection("/search", { query: "x", mode: "magic" })).toMatch(/mode/);
    expect(await rejection("/search", { query: "x", kinds: ["spaceship"] })).toMatch(/kinds: "spaceship" is not one of function/);
    expect(await rejection("/search", { query: "x", include: ["spaceship"] })).toMatch(/include/);
    expect(await rejection("/search", { query: "x", glob: "{src" })).toMatch(/glob/);
    expect(await rejection("/search", { query: "x", changed_since: "yesterday" })).toMatch(/changed_since/);
    expect(await rejection("/search", { query: "x", context_lines: -1 })).toMatch(/context_lines/);
    expect(await rejection("/search", { query: "x", max_tokens: 1 })).toMatch(/max_tokens/);
    expect(await rejection("/search", { query: "x", project_path: "not/absolute" })).toMatch(/project_path/);
    expect(await rejection("/search", { query: "x", project_path: "shared" })).toMatch(/project_path/);
    expect(await rejection("/similar", {})).toMatch(/exactly one/);
    expect(await rejection("/similar", { text: "x", path: "y" })).toMatch(/exactly one/);
    expect(await rejection("/context", {})).toMatch(/exactly one/);
    expect(await rejection("/context", { path: "x", symbol: "y" })).toMatch(/exactly one/);
    expect(await rejection("/context", { path: "x", start_line: 5, end_line: 4 })).toMatch(/end_line/);
    expect(await rejection("/usages", { symbol: "x", limit: 101 })).toMatch(/limit/);
  });

  it("counts, cleans and compacts, and notes when nothing is indexed", async () => {
    const C = "third";
    const nothing = await call("POST", "/search", { project_path: C, query: "anything" });
    expect(nothing.body).toMatchObject({ results: [], note: expect.stringContaining("Nothing is indexed") });
    expect((await call("GET", `/stats?project_path=${C}`)).body).toMatchObject({ files: 0, chunks: 0, embeddings: [], pending: 0 });
    await http.cairn.code.indexBatch({ projectPath: C, files: Object.entries(FILES).map(([path, content]) => ({ path, content })) });
    const stats = (await call("GET", `/stats?project_path=${C}`)).body;
    expect(stats).toMatchObject({ files: 5, embeddings: [{ model: "test", is_current: true, vectors: stats.chunks }] });
    expect(stats.languages).toContainEqual({ language: "python", files: 1, chunks: expect.any(Number) });
    expect((await call("POST", "/clean", { project_path: C, glob: "src/**" })).body).toEqual({ removed: 3 });
    expect((await call("POST", "/compact", { project_path: C })).body).toMatchObject({ orphans: { rows: 0, terms: 0, vectors: 0 } });
    expect((await call("POST", "/clean", { project_path: C })).body).toEqual({ removed: 2 });
    expect((await call("GET", "/status")).body).toMatchObject({ pending: 0, running: 0, capacity: expect.any(Number) });
  });

  it("lists files and index jobs, passes a cancellation to the job, and ends one that no longer reports", async () => {
    const { files, total } = await post("/v1/code/files", { glob: "src/**", sort_by: "bytes", limit: 2 });
    expect([files.map(({ path }: { path: string }) => path), total]).toEqual([["src/retry.ts", "src/queue.ts"], 3]);
    expect(files[0]).toMatchObject({ language: "typescript", lines: 12, indexed_at: expect.any(String) });
    const report = (job_id: string, at: string) => ({
      ...{ job_id, status: "running", phase: "sending", started_at: at, updated_at: at, files_processed: 1, files_total: 2 },
      ...{ counts: { indexed: 1 }, skipped: { binary: 1 }, skipped_files: [{ path: "logo.png", reason: "binary" }], failed_files: [] },
    });
    const now = new Date().toISOString();
    expect(await post("/index/reports", report("lost", "2026-01-01T00:00:00.000Z"))).toEqual({ cancel_requested: false });
    await post("/index/reports", report("alive", now));
    const { jobs } = await post("/v1/code/jobs", {});
    expect(jobs).toMatchObject([
      { job_id: "alive", status: "running", interrupted: false, skipped_files: [{ path: "logo.png", reason: "binary" }] },
      { job_id: "lost", interrupted: true },
    ]);
    expect(await post("/v1/code/cancel", {})).toMatchObject({ job_id: "alive", status: "running", cancel_requested: true });
    expect(await post("/index/reports", report("alive", now))).toEqual({ cancel_requested: true });
    expect(await post("/v1/code/cancel", { job_id: "lost" })).toMatchObject({ status: "cancelled" });
    expect((await call("POST", "/v1/code/cancel", { project_path: A, job_id: "never" })).status).toBe(404);
  });

  it("shows a key nothing of another project, by any of the endpoints", async () => {
    const key = (await call("POST", "/v1/key/create", { label: "test", access: "admin", projects: [A] })).body.key as string;
    const attempts: readonly (readonly [string, string, object?])[] = [
      ["POST", "/search", { query: "secret of theirs" }],
      ["POST", "/similar", { text: "secret of theirs" }],
      ["POST", "/usages", { symbol: "sleep" }],
      ["POST", "/context", { path: "src/sleep.ts" }],
      ["POST", "/clean", {}],
      ["POST", "/compact", {}],
      ["POST", "/v1/code/reembed", {}],
      ["POST", "/v1/code/files", {}],
      ["POST", "/v1/code/jobs", {}],
      ["POST", "/v1/code/cancel", {}],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await call(method, path, { project_path: B, ...body }, key);
      expect(`${path} ${answer.status}`).toBe(`${path} 403`);
      expect(JSON.stringify(answer.body)).not.toContain("secret");
    }
    expect((await call("GET", `/stats?project_path=${B}`, undefined, key)).status).toBe(403);
    expect((await call("GET", `/status?project_path=${B}`, undefined, key)).status).toBe(403);
    expect((await call("GET", "/status", undefined, key)).status).toBe(403);
    const own = await call("POST", "/search", { project_path: A, query: "secret of theirs" }, key);
    expect(own.status).toBe(200);
    expect(JSON.stringify(own.body)).not.toContain("secret of theirs");
    const reader = (await call("POST", "/v1/key/create", { label: "test", access: "read", projects: [A] })).body.key as string;
    for (const path of ["/clean", "/compact", "/v1/code/reembed"])
      expect((await call("POST", path, { project_path: A }, reader)).status).toBe(403);
  });
});
