import { afterEach, describe, expect, it, vi } from "vitest";
import type { Embedders } from "../../src/ports/embedders.ts";
import type { EmbeddedPiece, EmbeddingStore, Unembedded } from "../../src/ports/embedding-store.ts";
import { type Backfiller, backfiller } from "../../src/recall/backfiller.ts";
import { testEmbedder } from "../support/embedders.ts";

const embedder = testEmbedder();
const embedders: Embedders = {
  preferred: async () => embedder,
  best: async () => embedder,
  serving: async () => embedder,
  named: async () => embedder,
  names: [embedder.model],
  close: async () => {},
};

/** A collection of one version, in memory, with hooks around the steps of a pass. */
function collection(...ids: string[]) {
  const records = new Map<string, Unembedded>(ids.map((id) => [id, { id, revision: 1, piece: 0, text: id }]));
  const vectors = new Set<string>();
  const version = { versionId: 1, isCurrent: true, createdAt: "", ...embedder };
  let passes = 0;
  let beforePut = async (): Promise<void> => {};
  const store: Pick<EmbeddingStore, "versions" | "counts" | "missing" | "putVectors"> = {
    versions: async () => {
      passes++;
      return [version];
    },
    counts: async () => ({ records: records.size, vectors: vectors.size, parts: 0, partVectors: 0 }),
    missing: async (_, limit, after) =>
      [...records.values()]
        .filter(({ id }) => id > (after?.id ?? "") && !vectors.has(id))
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit),
    async putVectors(_, texts: readonly EmbeddedPiece[]) {
      await beforePut();
      for (const { id } of texts) vectors.add(id);
      return texts.length;
    },
  };
  return {
    store: store as EmbeddingStore,
    add: (id: string) => records.set(id, { id, revision: 1, piece: 0, text: id }),
    hasAll: () => vectors.size === records.size,
    passes: () => passes,
    count: () => vectors.size,
    onPut: (hook: () => Promise<void>) => {
      beforePut = hook;
    },
  };
}

describe("backfiller", () => {
  let backfill: Backfiller;
  afterEach(() => backfill.close());

  it("serves a request during a pass also while as many collections wait as the limit allows", async () => {
    backfill = backfiller({ embedders, firstDelayMs: 1, longestDelayMs: 1, maxWaiting: 1 });
    const { store, add, hasAll, onPut } = collection("m");
    const waiting = collection();
    onPut(async () => {
      onPut(async () => {});
      add("a"); // before the place that the pass has reached
      backfill.schedule("waiting", waiting.store);
      backfill.schedule("records", store);
    });
    backfill.schedule("records", store);
    await vi.waitFor(() => expect(hasAll()).toBe(true), { timeout: 10_000 });
  });

  it("embeds a record that was stored while a pass was running", async () => {
    backfill = backfiller({ embedders, firstDelayMs: 1 });
    const { store, add, hasAll, onPut } = collection("m");
    onPut(async () => {
      onPut(async () => {});
      add("a"); // before the position of the pass, so the pass itself cannot see it
      backfill.schedule("checkpoints /srv/app", store);
    });
    backfill.schedule("checkpoints /srv/app", store);
    await vi.waitFor(() => expect(hasAll()).toBe(true), { timeout: 10_000 });
  });

  it("runs a waiting pass when it is closed, if the model is known to answer, and cancels other passes", async () => {
    backfill = backfiller({ embedders, firstDelayMs: 60_000 });
    const [parts, others] = [collection("a", "b"), collection("a")];
    backfill.schedule("parts", parts.store, { atClose: true });
    backfill.schedule("others", others.store);
    await backfill.close();
    expect([parts.hasAll(), others.passes()]).toEqual([true, 0]);
  });

  it("ends within its time when it is closed, and keeps what was embedded", async () => {
    const slow = testEmbedder();
    const pausing = {
      ...slow,
      embed: (texts: readonly string[]) => (texts.includes("e") ? new Promise<never>(() => {}) : slow.embed(texts)),
    };
    backfill = backfiller({ embedders: { ...embedders, serving: async () => pausing }, firstDelayMs: 60_000, closeMs: 50 });
    const { store, count } = collection("a", "b", "c", "d", "e");
    backfill.schedule("parts", store, { atClose: true });
    await backfill.close();
    expect(count()).toBe(4);
  });

  it("checks a collection once per process unless a record is known to lack a vector", async () => {
    backfill = backfiller({ embedders, firstDelayMs: 1 });
    const { store, passes } = collection("a");
    backfill.scheduleOnce("code /srv/app", store);
    await vi.waitFor(() => expect(passes()).toBe(1), { timeout: 10_000 });
    backfill.scheduleOnce("code /srv/app", store);
    backfill.schedule("code /srv/other", store);
    await vi.waitFor(() => expect(passes()).toBe(2), { timeout: 10_000 });
    backfill.schedule("code /srv/app", store);
    await vi.waitFor(() => expect(passes()).toBe(3), { timeout: 10_000 });
  });
});
