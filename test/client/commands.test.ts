import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EXIT_ATTENTION } from "../../src/cli/exit-code.ts";
import { counts } from "../faults/processes.ts";
import { call, processStage, until } from "./processes.ts";

/** Every step is a process of its own, which takes seconds on a busy machine. */
const SLOW = { timeout: 900_000 };

let s: ReturnType<typeof processStage>;
beforeEach(() => {
  s = processStage();
});
afterEach(() => s.clear());

/** One file at a time takes long enough that a job is caught in its middle, also by a test that is held up. */
const STEP_BY_STEP = { CAIRN_CODE_BATCH_FILES: "1" };

/** A server that does not answer is waited for: so a job stays under way for as long as a test needs it. */
const NOBODY = ["--api-url", "http://127.0.0.1:1"];
const source = (n: number) => `def function_${n}():\n    return helper(${n})\n`;
function plant(files: number): void {
  for (let n = 0; n < files; n++) s.write(`src/part${n % 9}/f${n}.py`, source(n));
}
const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout);
const statusOf = async () => json(await s.run("code", "status", "--json"));

describe("cairn code index", SLOW, () => {
  it("waits with --wait, and reports files, chunks, skipped files with reasons, and failures", async () => {
    plant(30);
    s.write(".gitignore", "out/\n");
    s.write("out/x.py", "x");
    s.write("logo.png", "x");
    s.write("bad.py", Buffer.from([0x61, 0xff, 0x0a]));
    const { code, stdout } = await s.run("code", "index", ".", "--wait");
    expect(code).toBe(EXIT_ATTENTION);
    expect(stdout).toMatch(/^Index job \S{36}: partial in [\d.]+ s$/m);
    expect(stdout).toMatch(/files +31 indexed, 0 unchanged, 1 failed/);
    expect(stdout).toMatch(/chunks +\d+ new, from [\d.]+ kB/);
    expect(stdout).toMatch(/skipped +1 binary, 1 ignored|skipped +1 ignored, 1 binary/);
    expect(stdout).toMatch(/^ +binary: logo\.png$/m); // named, but for what the project's own rules leave out
    expect(stdout).not.toContain("out/");
    expect(stdout).toContain("bad.py: encoding: the content is not valid UTF-8");
    const again = await s.run("code", "index", "--wait", "--json");
    expect(json(again)).toMatchObject({ status: "partial", counts: { unchanged: 31, indexed: 0, failed: 1 } });
    expect((await s.run("code", "status")).stdout).toMatch(/31 files in \d+ chunks/);
  });

  it("returns at once without --wait, and the job continues in the background", async () => {
    plant(200);
    const begun = json(await s.run("code", "index", "--json"));
    expect(begun).toMatchObject({ status: "pending", job_id: expect.any(String) });
    await until(() => s.jobs().some(({ finished_at }) => finished_at !== undefined));
    expect(await statusOf()).toMatchObject({
      indexed_files: 200,
      jobs: [{ job_id: begun.job_id, status: "completed", counts: { indexed: 200 } }],
    });
  });

  it("reports a running job, and lets another command cancel it", async () => {
    plant(20);
    const begun = json(await s.run("code", "index", "--json", ...NOBODY));
    await until(() => s.jobs()[0]!.files_total === 20);
    const status = json(await s.run("code", "status", "--json", ...NOBODY));
    expect(status).toMatchObject({ jobs: [{ job_id: begun.job_id, status: "running", files_processed: 0, files_total: 20 }] });
    expect(json(await s.run("code", "index", "--json", ...NOBODY))).toMatchObject({ job_id: begun.job_id });
    expect(json(await s.run("code", "cancel", "--json"))).toMatchObject({ job_id: begun.job_id, status: "cancelled" });
    expect(json(await s.run("code", "index", "--wait", "--json"))).toMatchObject({ status: "completed", counts: { indexed: 20 } });
  });

  it("continues the same job after kill -9, and sends no file twice", { timeout: 900_000 }, async () => {
    plant(1_000);
    const kills = counts({ short: 3, soak: 40 });
    const ids = new Set<string>();
    let before = 0;
    for (let kill = 0; kill < kills; kill++) {
      const child = s.start(["code", "index", "--wait"], STEP_BY_STEP);
      const ended = once(child, "close");
      await until(() => child.exitCode !== null || s.jobs().some(({ counts: { indexed } }) => indexed > 0));
      child.kill("SIGKILL");
      await ended;
      const [job] = s.jobs();
      ids.add(job!.job_id);
      before = (await statusOf()).indexed_files;
      expect(before).toBeLessThanOrEqual(1_000);
    }
    const done = json(await s.run("code", "index", "--wait", "--json"));
    ids.add(done.job_id);
    expect(ids.size).toBe(1);
    expect(done).toMatchObject({ status: "completed", files_processed: 1_000, counts: { unchanged: before, indexed: 1_000 - before } });
    expect(await statusOf()).toMatchObject({ indexed_files: 1_000 });
  });

  it("is cancelled by Ctrl-C, and reports it", async () => {
    plant(20);
    const child = s.start(["code", "index", "--wait", ...NOBODY]);
    await until(() => s.jobs().some((job) => job.files_total === 20));
    child.kill("SIGINT");
    const [code] = await once(child, "close");
    expect(code).toBe(130);
    expect(await statusOf()).toMatchObject({ jobs: [{ status: "cancelled" }] });
  });

  it("reports an invalid folder, and a cancel without a job", async () => {
    expect(await s.run("code", "index", "nowhere")).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no folder") });
    expect(await s.run("code", "index", "/", "--wait")).toMatchObject({ code: 2, stderr: expect.stringContaining("home directory") });
    expect(await s.run("code", "cancel")).toMatchObject({ code: 3, stderr: expect.stringContaining("No index job") });
  });

  it("finds with code search what it indexed, and marks stale hits", async () => {
    s.write("retry.py", "def retry_with_backoff(work):\n    return work()\n");
    s.write("other.py", "def other():\n    return retry_with_backoff(other)\n");
    await s.run("code", "index", "--wait");
    const search = async () =>
      json(await s.run("code", "search", "retry_with_backoff", "--json")).results as { path: string; stale?: boolean }[];
    const fresh = await search();
    expect(fresh.map(({ path, stale }) => `${path} ${stale}`)).toEqual(expect.arrayContaining(["retry.py false", "other.py false"]));
    s.write("retry.py", "def retry_with_backoff(work):\n    return None\n");
    expect((await search()).find(({ path }) => path === "retry.py")).toMatchObject({ stale: true });
    expect((await s.run("code", "search", "retry_with_backoff")).stdout).toContain("stale");
    const used = json(await s.run("code", "usages", "retry_with_backoff", "--json"));
    expect(used).toMatchObject({ definitions: [{ path: "retry.py", stale: true }], references: [{ path: "other.py", stale: false }] });
    expect((await s.run("code", "usages", "retry_with_backoff")).stdout).toMatch(/retry\.py:1:5 .*\(function, stale\)$/m);
    await s.run("code", "index", "--wait");
    expect((await search()).find(({ path }) => path === "retry.py")).toMatchObject({ stale: false });
  });
});

describe("cairn code watch", SLOW, () => {
  it("picks up edits until it is stopped", async () => {
    s.write("a.py", "a = 1\n");
    const child = s.start(["code", "watch"]);
    let said = "";
    child.stdout!.on("data", (chunk) => (said += chunk));
    await until(() => /1 indexed/.test(said));
    s.write("b.py", "def newly_written():\n    pass\n");
    await until(() => (said.match(/1 indexed/g) ?? []).length >= 2);
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(json(await s.run("code", "context", "--symbol", "newly_written", "--json")).contexts).toMatchObject([{ path: "b.py" }]);
  });
});

describe("cairn mcp", SLOW, () => {
  it("indexes while it answers calls, reports progress to a waiting client, and continues after a kill", async () => {
    plant(1_500);
    const first = await s.mcp([], STEP_BY_STEP);
    const begun = await call(first, "code_index");
    expect(begun).toMatchObject({ status: "pending" });
    await until(async () => ((await call(first, "code_status")).jobs as { files_processed: number }[])[0]!.files_processed > 0);
    await first.close(); // the client goes away in the middle, and kills a server that takes long to end
    expect(["pending", "running"]).toContain(s.jobs()[0]!.status);

    const second = await s.mcp(); // resumes automatically
    await until(() => s.jobs()[0]!.status !== "pending");
    const reported: number[] = [];
    const done = await call(
      second,
      "code_index",
      { wait: true },
      { onprogress: ({ progress }: { progress: number }) => reported.push(progress) },
    );
    const resumed = s.jobs().find(({ job_id }) => job_id === begun.job_id)!;
    expect([resumed.status, done.status]).toEqual(["completed", "completed"]);
    expect(resumed.counts.unchanged).toBeGreaterThan(0);
    // A test that is held up may ask when it was through already, and then for another.
    if (done.job_id === begun.job_id) expect(reported.length).toBeGreaterThan(0);
    expect([...reported].sort((a, b) => a - b)).toEqual(reported);
    expect(await call(second, "code_status")).toMatchObject({ indexed_files: 1_500 });
    const state = JSON.parse(readFileSync(join(s.home, ".cairn", "mcp-state.json"), "utf8"));
    expect(state).toMatchObject({ current_jobs: {}, recent_paths: [s.project] });
  });

  it("saves and searches while it indexes long files, without losing either", async () => {
    const long = (n: number) =>
      Array.from({ length: 200 }, (_, i) => `def part_${n}_${i}():\n${"    call(one, two)\n".repeat(20)}`).join("\n");
    for (let n = 0; n < 6; n++) s.write(`src/long${n}.py`, long(n));
    const client = await s.mcp([], { CAIRN_EMBEDDER_KIND: "static" });
    await call(client, "code_index");
    const statusNow = async () => (await call(client, "code_status")) as { indexed_files: number; jobs: { status: string }[] };
    let saved = 0;
    while (["pending", "running"].includes((await statusNow()).jobs[0]!.status)) {
      await call(client, "checkpoint_save", { summary: `Number ${++saved}` });
      await call(client, "code_search", { query: "call one and two" });
    }
    expect(await call(client, "checkpoint_list", { limit: 1 })).toMatchObject({ total: saved });
    expect(await statusNow()).toMatchObject({ indexed_files: 6, jobs: [{ status: "completed" }] });
    const { definitions } = (await call(client, "code_usages", { symbol: "part_5_199" })) as { definitions: unknown[] };
    expect(definitions).toHaveLength(1);
    await client.close();
    expect(json(await s.run("code", "compact", "--json")).orphans).toEqual({ rows: 0, terms: 0, vectors: 0 });
  });

  it("keeps the index up to date with code.watch", async () => {
    s.write("a.py", "def first_name():\n    pass\n");
    const client = await s.mcp([], { CAIRN_CODE_WATCH: "true" });
    const definitions = async (name: string) => ((await call(client, "code_usages", { symbol: name })).definitions as unknown[]).length;
    await until(async () => (await definitions("first_name")) === 1);
    writeFileSync(join(s.project, "a.py"), "def second_name():\n    pass\n");
    await until(async () => (await definitions("second_name")) === 1);
    expect(await definitions("first_name")).toBe(0);
  });
});
