import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { call, lastingPort, processStage, until } from "./processes.ts";

/** Every step is a process of its own, which takes seconds on a busy machine. */
const SLOW = { timeout: 900_000 };

let s: ReturnType<typeof processStage>;
beforeEach(() => {
  s = processStage();
});
afterEach(() => s.clear());

const FILES = 400;
/** Quick, so that the test is about the restart. */
const fast = { CAIRN_CODE_REQUESTS_PER_SECOND: "200" };

describe("cairn mcp --api-url", SLOW, () => {
  it("performs every call on the server, and finishes an index through a kill -9 of the server, without duplicates", {
    timeout: 900_000,
  }, async () => {
    for (let n = 0; n < FILES; n++) s.write(`src/part${n % 7}/f${n}.py`, `def function_${n}():\n    return helper(${n})\n`);
    let server = await s.serve(await lastingPort());
    const client = await s.mcp(["--api-url", server.url], fast);
    const { id } = await call(client, "checkpoint_save", { summary: "Kept on the server", tags: ["split"] });
    expect(await call(client, "checkpoint_get", { id })).toMatchObject({ summary: "Kept on the server", project_path: s.project });
    expect(await call(client, "code_status")).toMatchObject({ indexed_files: 0, jobs: [] });

    const begun = await call(client, "code_index");
    const job = () => s.jobs().find(({ job_id }) => job_id === begun.job_id)!;
    for (const share of [0.2, 0.5]) {
      await until(() => job().files_processed >= share * FILES);
      await server.kill();
      server = await s.serve(server.port);
    }
    await until(() => job().finished_at !== undefined);
    expect(job()).toMatchObject({ status: "completed", files_processed: FILES, counts: { failed: 0 } });
    expect(await call(client, "code_status")).toMatchObject({ indexed_files: FILES });
    const { definitions, total_references } = await call(client, "code_usages", { symbol: "function_7" });
    expect(definitions).toMatchObject([{ path: "src/part0/f7.py", line: 1 }]);
    expect(await call(client, "code_usages", { symbol: "helper" })).toMatchObject({ total_references: FILES });
    expect(total_references).toBe(0);

    // The client side reads the disk, which the server cannot.
    s.write("src/part0/f7.py", "def function_7():\n    return other\n");
    const shown = await call(client, "code_context", { symbol: "function_7" });
    expect(shown.contexts).toMatchObject([{ stale: true }]);
    expect(await call(client, "code_usages", { symbol: "function_7" })).toMatchObject({ definitions: [{ stale: true }] });
    await client.close();
    await server.kill();

    // The client side has no copy, and the server has each file once and nothing left over.
    const storage = sqliteStorage({ dataDir: join(s.folder, "server"), now: systemClock });
    const { code } = (await storage.find(s.project))!;
    expect((await code.files()).length).toBe(FILES);
    expect(await code.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
    await storage.close();
    const own = sqliteStorage({ dataDir: join(s.home, ".cairn"), now: systemClock });
    expect(await own.find(s.project), projectDatabaseName(s.project)).toBeUndefined();
    await own.close();
  });

  it("merges projects that the server has, and finds the receiving one by the folder of this machine", async () => {
    s.write("packages/api/a.py", "x = 1\n");
    const server = await s.serve();
    const remote = ["--api-url", server.url];
    const from = join(s.project, "packages/api");
    const saved = await fetch(`${server.url}/v1/checkpoint/save`, {
      method: "POST",
      headers: { authorization: `Bearer ${s.token()}`, "content-type": "application/json" },
      body: JSON.stringify({ project_path: from, summary: "Stored under the subfolder" }),
    });
    expect(saved.status).toBe(200);
    spawnSync("git", ["-C", s.project, "init", "--quiet"]);
    const dryRun = await s.run("project", "merge", from, "--dry-run", ...remote);
    expect(dryRun.stdout).toContain("Would move 1 checkpoint");
    const merged = await s.run("project", "merge", from, ...remote);
    expect([merged.code, merged.stderr]).toEqual([0, ""]);
    expect(merged.stdout).toContain(`Moved 1 checkpoint and 0 knowledge records from ${from} into ${s.project}.`);
    expect((await s.run("checkpoint", "list", ...remote)).stdout).toContain("Stored under the subfolder");
  });

  it("serves the command line too, and reports an unreachable server", async () => {
    s.write("a.py", "def remote_name():\n    pass\n");
    const server = await s.serve();
    const remote = ["--api-url", server.url];
    expect((await s.run("code", "index", "--wait", ...remote)).stdout).toContain("1 indexed");
    const found = JSON.parse((await s.run("code", "usages", "remote_name", "--json", ...remote)).stdout);
    expect(found.definitions).toMatchObject([{ path: "a.py" }]);
    expect((await s.run("checkpoint", "list", ...remote)).stdout).toContain("No checkpoints");
    await s.run("checkpoint", "save", "Port the parser", ...remote);
    const { stdout: exported } = await s.run("checkpoint", "export", ...remote);
    expect(exported).toContain('"summary":"Port the parser"');
    s.write("export.jsonl", exported);
    expect((await s.run("checkpoint", "delete", "latest", ...remote)).code).toBe(0);
    expect((await s.run("checkpoint", "import", join(s.project, "export.jsonl"), ...remote)).stdout).toContain("1 checkpoint");
    expect((await s.run("checkpoint", "list", ...remote)).stdout).toContain("Port the parser");
    await server.kill();
    expect(await s.run("checkpoint", "list", ...remote)).toMatchObject({ code: 9, stderr: expect.stringContaining("cannot be reached") });
  });
});

describe("a hook with api.url", SLOW, () => {
  it("saves and offers checkpoints on the server", async () => {
    const server = await s.serve();
    const env = { CAIRN_API_URL: server.url };
    s.write("transcript.jsonl", `${JSON.stringify({ type: "user", message: { role: "user", content: "Port the parser" } })}\n`);
    const event = { session_id: "s1", transcript_path: join(s.project, "transcript.jsonl"), cwd: s.project, reason: "exit" };
    await s.pipe(["hook", "session-end"], JSON.stringify(event), env);
    const offered = await s.pipe(["hook", "session-start"], JSON.stringify({ cwd: s.project, source: "startup" }), env);
    expect(offered.stderr).toBe("");
    expect(JSON.parse(offered.stdout).hookSpecificOutput.additionalContext).toContain("Port the parser");
    const client = await s.mcp(["--api-url", server.url]);
    expect(await call(client, "checkpoint_list")).toMatchObject({ total: 1 });
  });
});
