import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { END, graph, openRunStore, type RunStore } from "../../src/runs.ts";
import { hasEnded, newOwner } from "../../src/scheduling/owner.ts";
import { newRun } from "../../src/testing/run-samples.ts";
import { endedOwner } from "./ended-owner.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-take-over-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the owner of a lease", () => {
  it("has ended when its process no longer exists, or its number belongs to a newer process", () => {
    expect(hasEnded(endedOwner())).toBe(true);
    const [machine, pid, , id] = newOwner().split("/");
    expect(hasEnded([machine, pid, "1", id].join("/"))).toBe(process.platform === "linux");
  });

  it("has not ended while its process runs, on another machine, or in an unknown form", () => {
    expect(hasEnded(newOwner())).toBe(false);
    const [, , started, id] = newOwner().split("/");
    expect(hasEnded(["elsewhere", 999_999_999, started, id].join("/"))).toBe(false);
    for (const text of ["", "me", "a/b/c", "6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c"]) expect(hasEnded(text)).toBe(false);
  });
});

const stores: Record<string, () => Promise<RunStore>> = {
  files: () => openRunStore({ storage: "file", folder: join(folder, "runs") }),
  SQLite: () => openRunStore({ storage: "sqlite", path: join(folder, "runs.db") }),
};

describe.each(Object.entries(stores))("a run on %s whose process crashed", (_name, open) => {
  const one = graph<{ done: boolean }>({ name: "one" })
    .node("a", () => ({ done: true }))
    .edge("a", END)
    .entry("a")
    .compile();
  const first = { nodeId: "__start__", nextNode: "a", kind: "start", step: 0, state: '{"done":false}' } as const;
  const about = { graph: "one", fingerprint: one.definition.fingerprint, leaseMs: 3_600_000, first };

  it("is resumed and recovered before its lease expires", async () => {
    const store = await open();
    for (const runId of ["crashed", "crashed-too"]) await store.start({ ...newRun(runId), ...about, owner: endedOwner() });
    await store.start({ ...newRun("alive"), ...about, owner: newOwner() });
    expect(await one.resume("crashed", { store })).toMatchObject({ status: "completed", state: { done: true } });
    await expect(one.resume("alive", { store })).rejects.toMatchObject({ kind: "lease" });
    expect((await one.recover({ store })).map(({ runId }) => runId)).toEqual(["crashed-too"]);
    await store.close();
  });

  it("waits for the lease of another process when asked, and stops waiting when cancelled", async () => {
    const store = await open();
    const lease = await store.start({ ...newRun("held"), ...about, owner: "elsewhere/1/1/x" });
    const held: unknown[] = [];
    const result = await one.resume("held", {
      store,
      wait: true,
      onWait(waiting) {
        held.push(waiting);
        if (held.length === 2) void store.release(lease, { status: "paused" });
      },
    });
    expect(result.status).toBe("completed");
    expect(held[0]).toMatchObject({ runId: "held", leaseOwner: "elsewhere/1/1/x" });

    await store.start({ ...newRun("held-again"), ...about, owner: "elsewhere/1/1/x" });
    const controller = new AbortController();
    const waiting = one.resume("held-again", { store, wait: true, signal: controller.signal, onWait: () => controller.abort() });
    await expect(waiting).rejects.toMatchObject({ kind: "cancelled", code: "cancelled" });
    await store.close();
  });
});
