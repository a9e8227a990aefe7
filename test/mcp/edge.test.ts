import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Connection, WAYS } from "./connections.ts";

const project_path = "/home/someone/project";

describe.each(WAYS)("MCP over $name", ({ connect }) => {
  let connection: Connection;
  beforeAll(async () => {
    connection = await connect();
  });
  afterAll(() => connection?.close());
  const call = (name: string, args: Record<string, unknown> = {}) => connection.client.callTool({ name, arguments: args });

  it("introduces itself and states when to use it", async () => {
    expect(connection.client.getServerVersion()).toMatchObject({ name: "cairn", title: "Cairn" });
    expect(connection.client.getInstructions()).toMatch(/memory/);
  });

  it("lists its tools with schemas and hints", async () => {
    const { tools } = await connection.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["checkpoint_save", "checkpoint_get", "checkpoint_list", "checkpoint_delete"]),
    );
    const save = tools.find(({ name }) => name === "checkpoint_save");
    expect(save).toMatchObject({
      annotations: { destructiveHint: false, openWorldHint: false },
      inputSchema: { type: "object", required: ["project_path", "summary"] },
      outputSchema: { type: "object" },
    });
    expect(tools.find(({ name }) => name === "checkpoint_delete")?.annotations).toMatchObject({ destructiveHint: true });
  });

  it("saves, gets, lists and deletes", async () => {
    await connection.client.listTools(); // now the client holds every result against the tool's output schema
    const saved = await call("checkpoint_save", { project_path, summary: "Parser done", tags: ["parser"], context: { branch: "main" } });
    expect(saved.isError).toBeFalsy();
    const checkpoint = { id: (saved.structuredContent as { id: string }).id };
    expect(saved.content).toEqual([{ type: "text", text: expect.stringContaining(checkpoint.id) }]);

    const got = await call("checkpoint_get", { project_path, id: checkpoint.id });
    expect(got.structuredContent).toMatchObject({ ...checkpoint, summary: "Parser done", tags: ["parser"], context: { branch: "main" } });
    const full = await call("checkpoint_get", { project_path, id: checkpoint.id, detail: "full" });
    expect(full.structuredContent).toMatchObject({ id: checkpoint.id, project_path, token_count: expect.any(Number) });

    const listed = await call("checkpoint_list", { project_path });
    expect(listed.structuredContent).toMatchObject({ total: 1, checkpoints: [{ id: checkpoint.id }] });

    expect((await call("checkpoint_delete", { project_path, id: checkpoint.id })).structuredContent).toMatchObject({ deleted: true });
    expect((await call("checkpoint_list", { project_path })).structuredContent).toMatchObject({ total: 0 });
  });

  it("reports missing fields to people and to programs", async () => {
    const result = await call("checkpoint_get", { project_path, id: "nowhere" });
    expect(result.isError).toBe(true);
    expect(result.content).toEqual([{ type: "text", text: expect.stringMatching(/^NOT_FOUND: .*"nowhere"/) }]);
    expect(result._meta).toMatchObject({ "cairn/error": { code: "NOT_FOUND" } });
  });

  it("refuses bad arguments with the field and the reason, and stores nothing", async () => {
    const other = "/home/someone/untouched";
    const bad: [Record<string, unknown>, RegExp][] = [
      [{}, /summary/],
      [{ summary: 7 }, /summary/],
      [{ summary: "" }, /summary: must not be empty/],
      [{ summary: "x".repeat(501) }, /summary: must have at most 500/],
      [{ summary: "a\u0000b" }, /NUL/],
      [{ summary: "a\ud800b" }, /surrogate/],
      [{ summary: "a", sumary: "b" }, /unknown field "sumary"/],
      [{ summary: "a", tags: 7 }, /tags/],
      [{ summary: "a", tags: Array(21).fill("t") }, /at most 20 tags/],
      [{ summary: "a", context: { k: null } }, /context/],
      [{ summary: "a", project_path: "/home/../etc" }, /project_path: must be in its cleaned form/],
      [{ summary: "a", project_path: "relative" }, /project_path: must be an absolute path/],
      [{ summary: "a", project_path: null }, /project_path/],
      [{ summary: "a", __proto__polluted: true }, /unknown field/],
    ];
    const before = await readdir(connection.dataDir);
    for (const [args, reason] of bad) {
      const result = await call("checkpoint_save", { project_path: other, ...args });
      expect(result.isError, JSON.stringify(args)).toBe(true);
      expect(result.content, JSON.stringify(args)).toEqual([{ type: "text", text: expect.stringMatching(reason) }]);
      expect(result._meta).toMatchObject({ "cairn/error": { code: "VALIDATION_ERROR", details: { issues: expect.any(Array) } } });
    }
    expect((await call("checkpoint_list", { project_path: other })).structuredContent).toMatchObject({ total: 0 });
    expect(await readdir(connection.dataDir)).toEqual(before);
  });

  it("answers an unknown tool with a protocol error and continues", async () => {
    await expect(call("no_such_tool")).rejects.toMatchObject({ code: -32602, message: expect.stringContaining("no_such_tool") });
    expect((await call("probe_aborted")).isError).toBeFalsy();
  });

  it("keeps inner failures to itself", async () => {
    const result = await call("probe_fail");
    expect(result._meta).toMatchObject({ "cairn/error": { code: "INTERNAL_ERROR" } });
    expect(JSON.stringify(result)).not.toContain("secret");
  });

  it("reports progress that grows, to a client that asks for it", async () => {
    const seen: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const result = await connection.client.callTool(
      { name: "probe_count", arguments: { steps: 5 } },
      { onprogress: (progress) => seen.push(progress) },
    );
    expect(result.structuredContent).toEqual({ counted: 5 });
    expect(seen.length).toBeGreaterThanOrEqual(2);
    // A client may drop what it reads together with the result, so the last step is not asked for.
    expect(seen[0]).toEqual({ progress: 1, total: 5, message: "step 1" });
    expect(seen.map(({ progress }) => progress)).toEqual(seen.map(({ progress }) => progress).toSorted((a, b) => a - b));
  });

  it("stops the work when the client cancels", async () => {
    const aborted = async () => ((await call("probe_aborted")).structuredContent as { aborted: number }).aborted;
    const before = await aborted();
    const cancel = new AbortController();
    const running = connection.client.callTool(
      { name: "probe_count", arguments: { steps: 300 } },
      { signal: cancel.signal, onprogress: () => cancel.abort() },
    );
    await expect(running).rejects.toThrow();
    await expect.poll(aborted).toBe(before + 1);
  });

  it("answers many calls at once", async () => {
    const project = "/home/someone/busy";
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) => call("checkpoint_save", { project_path: project, summary: `Number ${index}` })),
    );
    expect(results.filter(({ isError }) => isError)).toEqual([]);
    expect((await call("checkpoint_list", { project_path: project })).structuredContent).toMatchObject({ total: 50 });
  });
});
