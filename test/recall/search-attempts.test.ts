import { describe, expect, it } from "vitest";
import type { Embedders } from "../../src/ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion } from "../../src/ports/embedding-store.ts";
import type { CandidateQuery, Candidates, RecallStore } from "../../src/ports/recall-store.ts";
import { type Ranking, type RescoredHits, type SearchRequest, searchRecords } from "../../src/recall/search.ts";
import { testEmbedder } from "../support/embedders.ts";

interface Filter {
  readonly createdFrom?: string;
}

const first = testEmbedder({ model: "first" });
const second = testEmbedder({ model: "second", dimension: 32 });
const versionOf = (versionId: number, { model, version, dimension }: typeof first): EmbeddingVersion => ({
  ...{ versionId, model, version, dimension, isCurrent: true, createdAt: "" },
});
const NONE: Candidates = { keyword: [], semantic: [] };

/** A search over a store that answers with these functions, and everything that the store and the backfiller were asked. */
function searchOf({
  candidates = async () => NONE,
  version = () => versionOf(1, first),
  rescoreAndRead = async ({ order }) => ({ hits: order.map(({ id }) => id) }),
  ...request
}: {
  readonly candidates?: (query: CandidateQuery<Filter>) => Promise<Candidates>;
  readonly version?: () => EmbeddingVersion | undefined;
  readonly rescoreAndRead?: (ranking: Ranking<Filter>) => Promise<RescoredHits<string>>;
} & Partial<Omit<SearchRequest<Filter, string>, "rescoreAndRead" | "store">> = {}) {
  const asked: CandidateQuery<Filter>[] = [];
  const scheduled: string[] = [];
  const embeddings: Pick<EmbeddingStore, "versions"> = {
    versions: async () => [version()].filter((one) => one !== undefined),
  };
  const store: RecallStore<Filter> = {
    embeddings: embeddings as EmbeddingStore,
    candidates(query) {
      asked.push(query);
      return candidates(query);
    },
    similarities: async () => new Map(),
  };
  const embedders: Embedders = {
    preferred: async () => first,
    best: async () => first,
    serving: async ({ model }) => [first, second].find((one) => one.model === model),
    named: async () => undefined,
    names: [],
    close: async () => {},
  };
  const backfiller = {
    schedule: (collection: string) => void scheduled.push(collection),
    scheduleOnce: () => {},
    close: async () => {},
  };
  const redact = (text: string) => ({ text: text.replaceAll("hunter2", "[redacted]"), found: [] });
  const answer = searchRecords(
    { embedders, backfiller, redact },
    { collection: "checkpoints", database: "/srv/app", store, query: "some words", filter: {}, topK: 5, ...request, rescoreAndRead },
  );
  return { answer, asked, scheduled };
}

describe("searchRecords", () => {
  it("ranks again while records change, ten times in all, and then reports it", async () => {
    const { answer, asked } = searchOf({ candidates: async () => ({ ...NONE, keyword: [{ id: "a", score: 1 }], incomplete: true }) });
    expect(await answer).toMatchObject({ hits: ["a"], degraded: [expect.stringContaining("changed during the search")] });
    expect(asked).toHaveLength(10);
  });

  it("ranks again when a ranked record was replaced before it was read", async () => {
    let reads = 0;
    const { answer, asked } = searchOf({ rescoreAndRead: async () => ({ hits: ["a"], incomplete: ++reads < 3 }) });
    expect(await answer).toMatchObject({ hits: ["a"], degraded: [] });
    expect(asked).toHaveLength(3);
  });

  it("embeds the query once for all attempts with the same version, and again for another version", async () => {
    first.calls = 0;
    second.calls = 0;
    let attempts = 0;
    const { answer, asked } = searchOf({
      version: () => (attempts < 3 ? versionOf(1, first) : versionOf(2, second)),
      candidates: async ({ semantic }) =>
        ++attempts < 5 ? { ...NONE, incomplete: attempts < 3 } : { ...NONE, semantic: [{ id: String(semantic!.versionId), score: 1 }] },
      rescoreAndRead: async ({ order }) => ({ hits: order.map(({ id }) => id), incomplete: attempts === 4 }),
    });
    expect(await answer).toMatchObject({ hits: ["2"], version: { model: "second" } });
    expect(asked.map(({ semantic }) => semantic?.versionId)).toEqual([1, 1, 1, 2, 2]);
    expect([first.calls, second.calls]).toEqual([1, 1]);
  });

  it("requests a backfill when a record has no vector, and ranks it by its keyword score", async () => {
    const { answer, scheduled } = searchOf({
      candidates: async () => ({
        keyword: [
          { id: "new", score: 2 },
          { id: "old", score: 1 },
        ],
        semantic: [{ id: "old", score: 0.1 }],
      }),
    });
    expect(await answer).toMatchObject({ hits: ["new", "old"], degraded: [] });
    expect(scheduled).toEqual(["checkpoints /srv/app"]);
  });

  it("removes secrets from the query before anything sees it, then rewrites it", async () => {
    const { answer, asked } = searchOf({
      query: "login hunter2",
      rewrite: (query) => query.toUpperCase(),
      rescoreAndRead: async ({ query }) => ({ hits: [query] }),
    });
    expect((await answer).hits).toEqual(["login [redacted]"]);
    expect(asked[0]!.text).toBe("LOGIN [REDACTED]");
  });

  it("brings times of the filter to UTC, and rejects what is no time", async () => {
    const { answer, asked } = searchOf({
      filter: { createdFrom: "2026-01-31T01:00:00+02:00" },
      rescoreAndRead: async ({ filter }) => ({ hits: [filter.createdFrom!] }),
    });
    expect((await answer).hits).toEqual(["2026-01-30T23:00:00.000Z"]);
    expect(asked[0]!.filter).toEqual({ createdFrom: "2026-01-30T23:00:00.000Z" });
    await expect(searchOf({ filter: { createdFrom: "yesterday" } }).answer).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("searches by keyword alone when the embedder fails, and refuses a semantic search", async () => {
    first.mood = "down";
    const { answer, asked } = searchOf();
    expect((await answer).degraded).toEqual([expect.stringContaining("so only keywords were searched")]);
    expect(asked[0]!.semantic).toBeUndefined();
    await expect(searchOf({ mode: "semantic" }).answer).rejects.toMatchObject({ code: "unavailable" });
    first.mood = "well";
  });
});
