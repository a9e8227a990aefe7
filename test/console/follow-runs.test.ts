import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { emit } from "../../console/api/events.ts";
import { followRuns, type ListedRun, type RunFilter } from "../../console/pages/runs/follow-runs.ts";
import { type Feed, feed } from "../../console/state/feed.ts";

/** The runs of a store, by id. */
let stored: Map<string, ListedRun>;
let seconds: number;
let stop = () => {};
beforeEach(() => {
  stored = new Map();
  seconds = 0;
});
afterEach(() => stop());

function change(id: string, status: string): void {
  const updated_at = new Date(Date.UTC(2026, 0, 1) + ++seconds * 1_000).toISOString();
  stored.set(id, { run_id: id, status, updated_at });
}
const ids = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index}`);
const running = () => [...stored.values()].filter(({ status }) => status === "running").map(({ run_id }) => run_id);

const newest = async ({ status }: RunFilter, limit: number) =>
  [...stored.values()]
    .filter((run) => status === undefined || run.status === status)
    .sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1))
    .slice(0, limit);

/** A list that is shown, and loaded again when its follower asks for it. */
async function show(filter: RunFilter): Promise<{ shown(): string[]; reloads(): number }> {
  let list: Feed<ListedRun>;
  let reloads = 0;
  const load = async () => {
    let isEnd = false;
    const next = async () => {
      if (isEnd) return [];
      isEnd = true;
      return newest(filter, 1_000);
    };
    list = feed(next, { keyOf: (run) => run.run_id, orderOf: (run) => run.updated_at, signal: new AbortController().signal });
    stop();
    const reload = () => {
      reloads++;
      void load();
    };
    stop = followRuns(list, { filter, newest, reload });
    await list.more();
    await list.more();
  };
  await load();
  return { shown: () => list.pages.value.flat().map(({ run_id }) => run_id), reloads: () => reloads };
}

const burst = () => emit({ kind: "run", action: "many" });

describe("a list of running runs", () => {
  it("removes runs that ended, after a burst of more changes than one read returns", async () => {
    for (const id of ids("order", 180)) change(id, "running");
    const { shown } = await show({ status: "running" });
    expect(shown()).toHaveLength(180);
    for (const id of ids("order", 150)) change(id, "completed");
    burst();
    await expect.poll(shown).toHaveLength(30);
    expect(shown().sort()).toEqual(running().sort());
  });

  it("is not loaded again for a few changes, however many runs ended after its newest one", async () => {
    change("old", "running");
    for (const id of ids("done", 300)) change(id, "completed");
    const { shown, reloads } = await show({ status: "running" });
    for (const round of [1, 2, 3]) {
      change(`new-${round}`, "running");
      burst();
      await expect.poll(shown).toContain(`new-${round}`);
    }
    change("old", "completed");
    burst();
    await expect.poll(shown).not.toContain("old");
    expect(reloads()).toBe(0);
  });
});

it("loads the list of all runs again after a burst of more changes than one read returns", async () => {
  for (const id of ids("order", 5)) change(id, "running");
  const { shown, reloads } = await show({});
  for (const id of ids("burst", 150)) change(id, "running");
  burst();
  await expect.poll(shown).toHaveLength(155);
  expect(reloads()).toBe(1);
});
