import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";

const opened: Cairn[] = [];
afterEach(async () => {
  for (const cairn of opened.splice(0)) await cairn.close();
});

async function fresh() {
  const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  opened.push(cairn);
  return cairn;
}

const calling =
  (cairn: Cairn, caller: Caller = LOCAL_CALLER) =>
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked at field by field
  (name: string, input: Record<string, unknown> = {}): Promise<any> =>
    invoke(cairn, operations.find((one) => one.name === name)!, input, { caller });

const record = (id: string, minute: number, change: object = {}) => ({
  id,
  summary: `Step ${id}`,
  created_at: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  ...change,
});

describe("checkpoint_list_all", () => {
  it("returns every checkpoint once, newest first, whatever the projects and the size of a page", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(3), { maxLength: 40 }), fc.integer({ min: 1, max: 15 }), async (projects, limit) => {
        const cairn = await fresh();
        const call = calling(cairn);
        for (const project of new Set(projects)) {
          const records = projects.flatMap((of, minute) => (of === project ? [record(`id-${minute}`, minute)] : []));
          await cairn.checkpoints.import({ projectPath: `/p${project}`, records });
        }
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await call("checkpoint_list_all", { limit, ...(cursor && { cursor }) });
          expect(page.total).toBe(projects.length);
          found.push(...page.checkpoints.map(({ id, project_path }: { id: string; project_path: string }) => `${project_path} ${id}`));
          cursor = page.next_cursor;
        } while (cursor !== undefined);
        expect(found).toEqual(projects.map((project, minute) => `/p${project} id-${minute}`).reverse());
      }),
      { numRuns: 25 },
    );
  });

  it("shows a key its own projects only, filters, and counts days over them", async () => {
    const cairn = await fresh();
    await cairn.checkpoints.import({ projectPath: "/mine", records: [record("a", 1, { tags: ["x"] }), record("b", 24 * 60)] });
    await cairn.checkpoints.import({ projectPath: "/also", records: [record("c", 2, { description: "certificates" })] });
    await cairn.checkpoints.import({ projectPath: "/theirs", records: [record("d", 3)] });
    const call = calling(cairn, { ...LOCAL_CALLER, projects: ["/mine", "/also"] } as Caller);
    const ids = async (input: object) => (await call("checkpoint_list_all", { ...input })).checkpoints.map(({ id }: { id: string }) => id);
    expect(await ids({})).toEqual(["b", "c", "a"]);
    expect(await ids({ tags: ["x"] })).toEqual(["a"]);
    expect(await ids({ text: "certificate" })).toEqual(["c"]);
    expect(await call("checkpoint_days_all")).toEqual({
      days: [
        { day: "2026-01-02", count: 1 },
        { day: "2026-01-01", count: 2 },
      ],
      partial: false,
      degraded: [],
    });
  });
});

describe("sessions", () => {
  it("are listed with their checkpoints, and the preview is what the next one receives", async () => {
    const cairn = await fresh();
    const call = calling(cairn);
    const context = (session_id: string) => ({ context: { session_id, branch: "main" } });
    await cairn.checkpoints.import({
      projectPath: "/p",
      records: [record("a", 1, context("one")), record("b", 2, context("two")), record("c", 3, context("one")), record("d", 4)],
    });
    expect(await call("session_list", { project_path: "/p" })).toMatchObject({
      sessions: [
        { session_id: "one", checkpoints: 2, branch: "main", summary: "Step c", last_at: "2026-01-01T00:03:00.000Z" },
        { session_id: "two", checkpoints: 1 },
      ],
      complete: true,
    });
    const { text, tokens } = await call("session_preview", { project_path: "/p" });
    expect(text).toContain("Step d");
    expect(text).toMatch(/Earlier:\n- .*Step c/);
    expect(tokens).toBeGreaterThan(10);
    expect(await call("session_preview", { project_path: "/empty" })).toEqual({ tokens: 0 });
  });
});
