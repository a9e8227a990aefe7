import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { END, graph } from "../../src/runs.ts";

interface Doc {
  readonly words: number;
  readonly by?: string;
}

const review = graph<Doc>({ name: "review" })
  .node("draft", ({ words }) => ({ words: words + 100 }))
  .branch("draft", ({ words }) => (words < 300 ? "draft" : "check"), ["draft", "check"])
  .fork("check", {
    branches: { facts: "facts", style: "style" },
    join: "approve",
    merge: (before) => before,
  })
  .node("facts", (state) => state)
  .edge("facts", "approve")
  .node("style", (state) => state)
  .edge("style", "polish")
  .node("polish", (state) => state)
  .edge("polish", "approve")
  .node("approve", (state, { interrupt }) => ({ ...state, by: interrupt<string>("Publish it?") }))
  .edge("approve", END)
  .entry("draft")
  .compile();

const folder = mkdtempSync(join(tmpdir(), "cairn-run-surfaces-"));
let cairn: Cairn;
beforeAll(async () => {
  cairn = await open({ dataDir: folder, embedder: [] });
  await review.run({ words: 0 }, { store: cairn.runs.store, runId: "mine", project: "/mine" });
  await review.run({ words: 0 }, { store: cairn.runs.store, runId: "theirs", project: "/theirs" });
  await review.run({ words: 0 }, { store: cairn.runs.store, runId: "nobodys" });
  const broken = graph<Doc>({ name: "broken" })
    .node("boom", () => {
      throw new Error("out of \u001b[31mpaper");
    })
    .edge("boom", END)
    .entry("boom")
    .compile();
  await broken.run({ words: 0 }, { store: cairn.runs.store, runId: "broken", project: "/mine" }).catch(() => {});
});
afterAll(async () => {
  await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

const named = (name: string) => operations.find((operation) => operation.name === name)!;
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers, and fail where a part is missing
const call = (name: string, input: object, caller: Caller = LOCAL_CALLER): Promise<any> =>
  invoke(cairn, named(name), input, { caller, edge: "cli" });
const onlyMine: Caller = { access: "admin", projects: ["/mine"] };

describe("runs on every surface", () => {
  it("lists runs by status, graph and project, in pages", async () => {
    const all = await call("run_list", {});
    expect(all.runs.map((run: { run_id: string }) => run.run_id).sort()).toEqual(["broken", "mine", "nobodys", "theirs"]);
    expect((await call("run_list", { status: "paused", project: "/mine" })).runs).toMatchObject([{ run_id: "mine", graph: "review" }]);
    const first = await call("run_list", { limit: 3 });
    const second = await call("run_list", { limit: 3, cursor: first.next_cursor });
    expect([...first.runs, ...second.runs]).toHaveLength(4);
    expect(second.next_cursor).toBeUndefined();
    expect((await call("run_list", { status: "failed" })).runs[0].reason).toContain("paper");
  });

  it("draws a run's path through its graph", async () => {
    const shown = await call("run_get", { run_id: "mine", include_state: true });
    expect(named("run_get").render(shown).split("\n").slice(2)).toEqual(
      [
        "",
        "○ start",
        "● draft ×3",
        "│ ├─ check facts: facts",
        "│ ╰─ check style: style → polish",
        "● check",
        "‖ approve waits: Publish it?",
        "┊ next: approve (paused)",
        "Answer with run_answer.",
        'state: {"words":300}',
      ].flatMap((line) => (line.startsWith("state") ? ["", line] : [line])),
    );
    const broken = named("run_get").render(await call("run_get", { run_id: "broken" }));
    expect(broken).toContain("✗ boom (try 1) failed: out of  [31mpaper");
    expect(broken).not.toContain("\u001b");
  });

  it("shows the state at an earlier checkpoint", async () => {
    expect(JSON.parse((await call("run_get", { run_id: "mine", sequence: 2, include_state: true })).state_json)).toEqual({ words: 100 });
  });

  it("pages through the history", async () => {
    const first = await call("run_history", { run_id: "mine", limit: 6 });
    const rest = await call("run_history", { run_id: "mine", limit: 6, before: first.next_before });
    expect([...first.checkpoints, ...rest.checkpoints].map(({ sequence }: { sequence: number }) => sequence)).toEqual([
      9, 8, 7, 6, 5, 4, 3, 2, 1,
    ]);
    expect(rest.next_before).toBeUndefined();
  });

  it("shows a key only the runs of its projects, whatever it asks", async () => {
    expect((await call("run_list", {}, onlyMine)).runs.map((run: { run_id: string }) => run.run_id).sort()).toEqual(["broken", "mine"]);
    expect((await call("run_list", { project: "/theirs" }, onlyMine)).runs).toEqual([]);
    for (const run_id of ["theirs", "nobodys", "no such run"]) {
      await expect(call("run_get", { run_id }, onlyMine)).rejects.toMatchObject({ code: "not_found" });
      await expect(call("run_history", { run_id }, onlyMine)).rejects.toMatchObject({ code: "not_found" });
      await expect(call("run_prune", { run_id, keep_last: 0 }, onlyMine)).rejects.toMatchObject({ code: "not_found" });
      expect(await call("run_delete", { run_id }, onlyMine)).toEqual({ deleted: false });
    }
    await expect(call("run_prune", { keep_last: 0 }, onlyMine)).rejects.toMatchObject({ code: "forbidden" });
    expect((await call("run_list", {})).runs).toHaveLength(4);
  });

  it("prunes and deletes, and says what went", async () => {
    await expect(call("run_prune", {})).rejects.toMatchObject({ code: "invalid_input" });
    const pruned = await call("run_prune", { run_id: "mine", keep_last: 1 });
    expect(pruned).toMatchObject({ runs: 0 });
    expect(pruned.checkpoints).toBeGreaterThan(0);
    expect(await review.resume("mine", { store: cairn.runs.store, input: "Ada" })).toMatchObject({
      status: "completed",
      state: { by: "Ada" },
    });
    expect(named("run_get").render(await call("run_get", { run_id: "mine" }))).toMatch(/◆ end$/);
    expect(await call("run_delete", { run_id: "mine" })).toEqual({ deleted: true });
    expect(await call("run_delete", { run_id: "mine" })).toEqual({ deleted: false });
    expect(await call("run_prune", { older_than: "0h" })).toMatchObject({ runs: 1 });
  });

  it("is offered to agents only in a toolset of its own", () => {
    const toolsets = operations.filter(({ name }) => name.startsWith("run_")).map(({ toolset }) => toolset);
    expect([...new Set(toolsets)]).toEqual(["runs"]);
    expect(toolsets).toHaveLength(12);
  });
});
