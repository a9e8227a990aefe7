import { afterEach, describe, expect, it, vi } from "vitest";
import { type CheckedRecord, checkIndex } from "../../src/freshness/check-index.ts";
import { recordMarker } from "../../src/freshness/mark-records.ts";
import { timeBudget, type Within } from "../../src/freshness/time-budget.ts";
import type { Anchored } from "../../src/model/anchor.ts";
import type { IndexedFile } from "../../src/model/code-index.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";

type Index = Parameters<typeof checkIndex>[0];

const file = (path: string, contentHash: string) =>
  ({ path, contentHash, generation: 2, indexedAt: "2026-01-02T00:00:00Z" }) as IndexedFile;
const record = (path: string, hash: string): CheckedRecord => ({
  anchors: [{ kind: "file", value: path, hash, generation: 1 }],
  updatedAt: "2026-01-01T00:00:00Z",
});
const records = [record("a.ts", "1"), record("b.ts", "1"), record("gone.ts", "1")];

/** An index with two files, one of them changed. Queries of these names never end. */
function index(...hanging: readonly string[]): Index & { readonly asked: string[] } {
  const asked: string[] = [];
  const answer = async <T>(name: string, value: T): Promise<T> => {
    asked.push(name);
    return hanging.includes(name) ? new Promise<T>(() => {}) : value;
  };
  return {
    asked,
    filesAt: (paths) =>
      answer(
        "filesAt",
        [file("a.ts", "1"), file("b.ts", "2")].filter(({ path }) => paths.includes(path)),
      ),
    filesWith: () => answer("filesWith", []),
    definitions: () => answer("definitions", []),
    chunksOf: () => answer("chunksOf", []),
    renames: () => answer("renames", []),
    counts: () => answer("counts", { files: 2 } as never),
  };
}

const states = async (of: Index, within?: Within) => (await checkIndex(of, records, within)).map(([mark]) => mark?.state);

describe("the time limit of a comparison with the code index", () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it("returns every mark in time", async () => {
    expect(await states(index())).toEqual(["fresh", "changed", "gone"]);
  });

  it("says unknown for anchors whose queries are late, and keeps the other marks", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { within, end } = timeBudget(5);
    const marks = states(index("renames"), within);
    await vi.advanceTimersByTimeAsync(5);
    expect(await marks).toEqual(["fresh", "changed", "unknown"]);
    end();
  });

  it("starts no query after the limit, also where queries block the thread", async () => {
    const busy = index();
    const { within, end } = timeBudget(60_000);
    const late = performance.now() + 60_001;
    const block = (work: () => Promise<unknown>) =>
      within(() => {
        vi.spyOn(performance, "now").mockReturnValue(late);
        return work();
      });
    expect(await states(busy, block as Within)).toEqual(["fresh", "changed", "unknown"]);
    expect(busy.asked).toEqual(["filesAt"]);
    end();
  });

  it("says unknown without a question if there is no time, and for a project that fails", async () => {
    const storage = memoryStorage();
    const asked: string[] = [];
    const find = async (id: string): Promise<never> => {
      asked.push(id);
      throw new Error("damaged");
    };
    const failing = { ...storage, find };
    const marked: Anchored & CheckedRecord = { anchors: records[0]!.anchors, updatedAt: "", supersededBy: "" };
    for (const limitMs of [0, 60_000]) {
      const [first] = await recordMarker({ storage: failing, limitMs })("/p", [marked]);
      expect(first!.freshness).toMatchObject({ state: "unknown" });
    }
    expect(asked).toEqual(["/p"]);
  });
});
