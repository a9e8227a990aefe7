import { once } from "node:events";
import { MessageChannel } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { SEGMENT_BYTES } from "../../../src/stores/sqlite/vectors/codes.ts";
import { findCollection } from "../../../src/stores/sqlite/vectors/collection.ts";
import type { FromWorker, ToWorker } from "../../../src/stores/sqlite/vectors/protocol.ts";
import { searchView } from "../../../src/stores/sqlite/vectors/search.ts";
import { segmentCache } from "../../../src/stores/sqlite/vectors/segment-cache.ts";
import { serve } from "../../../src/stores/sqlite/vectors/serve.ts";
import { currentView } from "../../../src/stores/sqlite/vectors/view.ts";
import { vectorWriter } from "../../../src/stores/sqlite/vectors/writer.ts";
import { bruteForce, openVectors, temporaryFile, vectorOf, vectorsOf } from "./support.ts";

const DIMENSION = 384;

describe("what the scanning thread remembers", () => {
  it("may be far less than a collection needs", async () => {
    const database = await openVectors(temporaryFile());
    const entries = vectorsOf(0, 4_000, DIMENSION);
    await database.write((tx) => vectorWriter(tx).put("c", 1, entries));
    const model = new Map(entries.map(({ key, vector }) => [key, vector]));
    const cache = segmentCache(3 * SEGMENT_BYTES);
    for (const seed of [1, 500, 9_999]) {
      const vector = vectorOf(seed, DIMENSION);
      const allow = Int32Array.from({ length: 400 }, (_, i) => i * 10);
      const search = (filter?: Int32Array) =>
        database.read((tx) => {
          const context = { tx, cache, file: 1, listsAbove: Number.MAX_SAFE_INTEGER };
          return searchView(context, currentView(tx, findCollection(tx, "c", 1)!, undefined), { vector, limit: 10, allow: filter });
        });
      expect(search().map(({ key }) => key)).toEqual(bruteForce(model, vector, 10).map(({ key }) => key));
      expect(search(allow).map(({ key }) => key)).toEqual(bruteForce(model, vector, 10, new Set(allow)).map(({ key }) => key));
    }
    // Three frames, the room for the filter, and what lies below them.
    expect(cache.bytes).toBeLessThan(8 * SEGMENT_BYTES);
  });

  it("is freed on request, and read again when it is needed", async () => {
    const path = temporaryFile();
    const database = await openVectors(path);
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 500, DIMENSION)));
    const { port1, port2 } = new MessageChannel();
    onTestFinished(() => port1.close());
    serve(port2);
    const ask = async (id: number) => {
      const task = { kind: "search", vector: vectorOf(7, DIMENSION), limit: 3 } as const;
      port1.postMessage({ id, request: { path, collection: "c", versionId: 1, listsAbove: 1e9, task } } satisfies ToWorker);
      const [message] = (await once(port1, "message")) as [FromWorker];
      return message;
    };
    const first = await ask(1);
    expect(first).toMatchObject({ id: 1, answer: { hits: [{ key: 7 }, {}, {}] } });
    port1.postMessage({ release: true } satisfies ToWorker);
    expect(await ask(2)).toMatchObject({ id: 2, answer: (first as { answer: object }).answer });
    port1.postMessage({ close: path } satisfies ToWorker);
    expect(await ask(3)).toMatchObject({ id: 3, answer: (first as { answer: object }).answer });
    port1.postMessage({ close: path } satisfies ToWorker);
  });
});
