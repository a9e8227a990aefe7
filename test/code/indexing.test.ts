import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { memoryIndexQueue } from "../../src/stores/memory/index-queue.ts";
import { type Answer, type Api, api } from "../http/api.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";
import { indexQueueContract } from "./index-queue.ts";

indexQueueContract("in memory", async (perform, options) => {
  let jobs = 0;
  return memoryIndexQueue({ perform, now: () => new Date().toISOString(), newId: () => `job-${++jobs}`, ...options });
});

/** Projects of each test's own. */
let A: string;
let B: string;
let tests = 0;
beforeEach(() => {
  A = `/srv/a${++tests}`;
  B = `my-project-${tests}`;
});
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const file = (path: string, name: string) => ({ path, content: `export function ${name}() {\n  return "${name}";\n}\n` });

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("content over HTTP on %s", (kind) => {
  let http: Api;
  let dataDir: string;
  let database: TestDatabase | undefined;
  let embedder: TestEmbedder;
  const call = (method: string, path: string, body?: unknown, key?: string) =>
    http.call(method, path, body, key ? { headers: { authorization: `Bearer ${key}` } } : {});
  const ended = async (accepted: Answer, key?: string): Promise<Answer["body"]> => {
    expect(accepted.status).toBe(202);
    for (;;) {
      const { body } = await call("GET", `/index/jobs/${accepted.body.job_id}?wait_ms=20000`, undefined, key);
      if (body.status !== "pending" && body.status !== "running") return body;
    }
  };
  const send = async (projectPath: string, ...files: object[]) => ended(await call("POST", "/index", { project_path: projectPath, files }));
  const filesOf = async (projectPath: string, ...paths: string[]) =>
    Object.keys((await call("POST", "/index/hashes", { project_path: projectPath, paths })).body.hashes).sort();
  const keyFor = async (access: string, ...projects: string[]) =>
    (await call("POST", "/v1/key/create", { label: "test", access, projects })).body.key as string;

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-indexing-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    embedder = testEmbedder();
    http = await api({ cairn: await open({ storage: database?.url ?? kind, dataDir, embedder: [embedder] }) });
  });
  afterAll(async () => {
    await http.cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });

  it("accepts files with 202, indexes them, and reports the result of each", async () => {
    const accepted = await call("POST", "/index", {
      project_path: A,
      files: [
        { ...file("src/one.ts", "one"), hash: sha256(file("", "one").content) },
        { ...file("src/two.ts", "two"), hash: sha256("another content") },
        { path: "../outside.ts", content: "x" },
        { path: "broken.ts", content: "a\u0000b" },
        { path: "data.conf", content: "x = 1\n", language: "python" },
      ],
    });
    expect(accepted.body).toMatchObject({ project_path: A, kind: "files", job_id: expect.any(String) });
    const job = await ended(accepted);
    expect(job).toMatchObject({ status: "partial", finished_at: expect.any(String) });
    const fates = Object.fromEntries(job.result.files.map((one: { path: string; status: string }) => [one.path, one.status]));
    expect(fates).toEqual({
      "src/one.ts": "indexed",
      "src/two.ts": "failed",
      "../outside.ts": "failed",
      "broken.ts": "failed",
      "data.conf": "indexed",
    });
    const { hashes } = (await call("POST", "/index/hashes", { project_path: A, paths: ["src/one.ts", "src/two.ts", "nowhere"] })).body;
    expect(hashes).toEqual({ "src/one.ts": sha256(file("", "one").content) });
  });

  it("never lets an older content win over a newer one, however many are sent at once", async () => {
    const versions = Array.from({ length: 6 }, (_, index) => file("src/a.ts", `version${index}`));
    const accepted: Answer[] = [];
    for (const version of versions) accepted.push(await call("POST", "/index", { project_path: A, files: [version] }));
    for (const one of accepted) expect((await ended(one)).status).toBe("completed");
    const { hashes } = (await call("POST", "/index/hashes", { project_path: A, paths: ["src/a.ts"] })).body;
    expect(hashes["src/a.ts"]).toBe(sha256(versions.at(-1)!.content));
  });

  it("takes renames, and embeds nothing for them", async () => {
    await send(A, file("src/old.ts", "kept"));
    const before = embedder.calls;
    const body = { project_path: A, files: [file("src/new.ts", "kept")], renames: [{ from: "src/old.ts", to: "src/new.ts" }] };
    expect((await ended(await call("POST", "/index", body))).result.files).toMatchObject([{ path: "src/new.ts", status: "renamed" }]);
    expect(embedder.calls).toBe(before);
    expect(await filesOf(A, "src/old.ts", "src/new.ts")).toEqual(["src/new.ts"]);
  });

  it("removes what a manifest does not name, page by page, and nothing outside a page", async () => {
    const names = ["a.ts", "b.ts", "c.ts", "d.ts", "e.ts", "f.ts"];
    await send(A, ...names.map((path) => file(path, path[0]!)));
    // The first page of two, and the second never comes: what it would have been about stays.
    const first = await call("POST", "/index/manifest", { project_path: A, paths: ["a.ts", "c.ts"], until: "c.ts" });
    expect((await ended(first)).result).toMatchObject({ removed: 1, removed_paths: ["b.ts"], renamed: 0 });
    expect(await filesOf(A, ...names)).toEqual(["a.ts", "c.ts", "d.ts", "e.ts", "f.ts"]);
    const second = await call("POST", "/index/manifest", { project_path: A, paths: ["e.ts"], after: "c.ts" });
    expect((await ended(second)).result).toMatchObject({ removed: 2, removed_paths: ["d.ts", "f.ts"] });
    expect(await filesOf(A, ...names)).toEqual(["a.ts", "c.ts", "e.ts"]);
  });

  it("does a manifest after what was sent before it, so that neither is lost", async () => {
    await send(A, file("src/gone.ts", "gone"));
    const before = embedder.calls;
    const renamed = await call("POST", "/index", { project_path: A, files: [file("lib/here.ts", "gone")] });
    const manifest = await call("POST", "/index/manifest", { project_path: A, paths: ["lib/here.ts"] });
    expect((await ended(manifest)).result).toMatchObject({ removed: 1, removed_paths: ["src/gone.ts"], renamed: 1 });
    expect((await ended(renamed)).status).toBe("completed");
    expect(embedder.calls).toBe(before); // a rename
    expect(await filesOf(A, "src/gone.ts", "lib/here.ts")).toEqual(["lib/here.ts"]);
  });

  it("refuses manifests that would remove more than was meant", async () => {
    await send(A, file("a.ts", "a"));
    for (const [page, problem] of [
      [{ paths: [] }, /at least one file/],
      [{ paths: ["a.ts", "a.ts"] }, /twice/],
      [{ paths: ["a.ts"], after: "b.ts" }, /range/],
      [{ paths: ["c.ts"], until: "b.ts" }, /range/],
      [{ paths: ["/etc/passwd"] }, /relative/],
      [{ paths: Array.from({ length: LIMITS.codeManifestPaths + 1 }, (_, index) => `f${index}`) }, /10000/],
    ] as const) {
      const answer = await call("POST", "/index/manifest", { project_path: A, ...page });
      expect(answer.status).toBe(400);
      expect(answer.body.error.message).toMatch(problem);
    }
    expect(await filesOf(A, "a.ts")).toEqual(["a.ts"]);
  });

  it("refuses batches that cannot be meant", async () => {
    const one = file("a.ts", "a");
    for (const body of [
      { files: [one] },
      { project_path: "relative/path", files: [one] },
      { project_path: "shared", files: [one] },
      { project_path: "/not/../clean", files: [one] },
      { project_path: A, files: [] },
      { project_path: A, files: [one, one] },
      { project_path: A, files: [{ path: "a.ts" }] },
      { project_path: A, files: [{ ...one, extra: 1 }] },
      { project_path: A, files: [one], renames: [{ from: "x.ts", to: "not-there.ts" }] },
      { project_path: A, files: Array.from({ length: LIMITS.codeBatchFiles + 1 }, (_, index) => ({ path: `f${index}`, content: "" })) },
      { project_path: A, files: [{ path: "a", content: "x".repeat(LIMITS.codeBatchBytes) }, one] },
    ])
      expect((await call("POST", "/index", body)).status).toBe(400);
    expect((await call("POST", "/index", { project_path: A, files: [{ path: "a", content: "x".repeat(LIMITS.bodyBytes) }] })).status).toBe(
      413,
    );
    expect(await http.cairn.projects()).not.toContain(A);
  });

  it("says 404 for a job that is not there, and to a key that may not touch the job's project", async () => {
    const accepted = await call("POST", "/index", { project_path: B, files: [file("a.ts", "a")] });
    const { job_id: id } = accepted.body;
    await ended(accepted);
    const key = await keyFor("admin", A);
    for (const [method, path] of [
      ["GET", "/index/jobs/11111111-2222-4333-8444-555555555555"],
      ["DELETE", "/index/jobs/nonsense"],
    ] as const)
      expect((await call(method, path)).status).toBe(404);
    for (const method of ["GET", "DELETE"]) {
      const answer = await call(method, `/index/jobs/${id}`, undefined, key);
      expect(answer.status).toBe(404);
      expect(JSON.stringify(answer.body)).not.toContain(B);
    }
    expect((await call("POST", "/index", { project_path: B, files: [file("a.ts", "b")] }, key)).status).toBe(403);
    expect((await call("POST", "/index/hashes", { project_path: B, paths: ["a.ts"] }, key)).status).toBe(403);
    expect((await call("POST", "/index/manifest", { project_path: B, paths: ["x.ts"] }, key)).status).toBe(403);
    const reader = await keyFor("read", B);
    expect((await call("POST", "/index", { project_path: B, files: [file("a.ts", "b")] }, reader)).status).toBe(403);
    expect((await call("GET", `/index/jobs/${id}`, undefined, reader)).body).toMatchObject({ status: "completed", project_path: B });
  });

  it("cancels what waits and what is under way, and nothing of it becomes visible", async () => {
    embedder.mood = "hanging";
    const first = await call("POST", "/index", { project_path: A, files: [file("first.ts", "first")] });
    const second = await call("POST", "/index", { project_path: A, files: [file("second.ts", "second")] });
    const statusOf = async ({ body }: Answer) => (await call("GET", `/index/jobs/${body.job_id}`)).body.status;
    while ((await statusOf(first)) !== "running") await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await call("GET", `/stats?project_path=${A}`)).body).toMatchObject({ running: 1, pending: 1 });
    expect((await call("DELETE", `/index/jobs/${second.body.job_id}`)).body.status).toBe("cancelled");
    expect((await call("DELETE", `/index/jobs/${first.body.job_id}`)).body.status).toBe("cancelled");
    embedder.mood = "well";
    expect((await send(A, file("third.ts", "third"))).status).toBe("completed");
    expect(await filesOf(A, "first.ts", "second.ts", "third.ts")).toEqual(["third.ts"]);
    expect((await call("GET", `/index/jobs/${first.body.job_id}?wait_ms=${LIMITS.codeJobWaitMs + 1}`)).status).toBe(400);
  });

  it("refuses with 503 and Retry-After when too much waits, loses nothing that it accepted, and continues", async () => {
    const usual = http;
    http = await api({ cairn: await open({ storage: database?.url ?? kind, dataDir, embedder: [embedder], code: { queueJobs: 3 } }) });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => call("POST", "/index", { project_path: A, files: [file(`f${index}.ts`, `f${index}`)] })),
    );
    const accepted = answers.filter(({ status }) => status === 202);
    const refused = answers.filter(({ status }) => status !== 202);
    expect(accepted.length).toBeGreaterThanOrEqual(3);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, headers, body } of refused) {
      expect(status).toBe(503);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      expect(body.error.name).toBe("UNAVAILABLE");
    }
    for (const one of accepted) expect((await ended(one)).status).toBe("completed");
    expect(await http.cairn.code.stats({ projectPath: A })).toMatchObject({ files: accepted.length });
    expect((await send(A, file("later.ts", "later"))).status).toBe("completed");
    await http.cairn.close();
    http = usual;
  });

  it("stores no secret, neither in the index nor while the file waits", async () => {
    const secret = `sk_live_${"4eC39HqLyjWDarjtT1zdp7dc"}`;
    const job = await send(A, { path: "config.ts", content: `export const stripeKey = "${secret}";\n` });
    expect(job.result.files[0]).toMatchObject({ status: "indexed", redacted: [expect.objectContaining({ count: 1 })] });
    const context = await http.cairn.code.context({ projectPath: A, path: "config.ts" });
    expect(JSON.stringify(context)).not.toContain(secret);
  });
});
