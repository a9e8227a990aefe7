import assert from "node:assert/strict";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter } from "../ports/checkpoint-store.ts";
import { splitPieces } from "../text/pieces.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { sampleCheckpoint } from "./checkpoint-samples.ts";
import { FIRST, longText, randomness, recallCase, SECOND, vectorAt } from "./recall-samples.ts";

/** The guarantees for long records, which are embedded in pieces. */
export const PIECE_CASES: readonly StorageCase[] = [
  recallCase("ranks a long record by its best piece and counts it once", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const random = randomness(7);
    const query = random.vector(8);
    const opposite = query.map((value) => -value);
    const long = sampleCheckpoint(project, { description: longText(random), tags: ["long"] });
    const short = sampleCheckpoint(project, { description: "", tags: ["short"] });
    await store.put(long, [{ versionId, vector: opposite }]);
    await store.put(short, [{ versionId, vector: vectorAt(0, query, random) }]);
    const semantic = { versionId, vector: query };
    const order = async (filter: CheckpointFilter = {}) =>
      (await store.candidates({ filter, limit: 5, semantic })).semantic.map(({ id, score }) => [id, Math.round(score * 100) / 100]);
    const before = await order();
    assert.deepEqual(before[1], [long.id, -1]);

    const parts = await store.embeddings.missing(versionId, 100);
    assert.deepEqual(
      parts.map(({ id, revision, piece, text }) => ({ id, revision, piece, text })),
      splitPieces(checkpointText(long)).flatMap((text, piece) => (piece === 0 ? [] : [{ id: long.id, revision: 1, piece, text }])),
    );
    assert.ok(parts.length > 3);
    const vectors = parts.map((part, index) => ({ ...part, vector: index === 2 ? query : opposite }));
    assert.equal(await store.embeddings.putVectors(versionId, vectors), parts.length);
    assert.equal(await store.embeddings.putVectors(versionId, vectors), parts.length);
    const counts = { records: 2, vectors: 2, parts: parts.length, partVectors: parts.length };
    assert.deepEqual(await store.embeddings.counts(versionId), counts);
    assert.deepEqual(await order(), [[long.id, 1], before[0]]);
    assert.deepEqual(await order({ tags: ["long"] }), [[long.id, 1]]);
    assert.deepEqual(await order({ tags: ["short"] }), [before[0]]);
    assert.deepEqual(
      (await store.candidates({ filter: {}, limit: 1, semantic })).semantic.map(({ id }) => id),
      [long.id],
    );
    const similar = await store.similarities(versionId, query, [long.id, short.id]);
    assert.ok(Math.abs(similar.get(long.id)! - 1) < 1e-4 && similar.size === 2);
  }),

  recallCase("finds as many records as asked for when each has many pieces near the query", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const random = randomness(8);
    const query = random.vector(8);
    const saved = Array.from({ length: 12 }, () => sampleCheckpoint(project, { description: longText(random) }));
    for (const checkpoint of saved) await store.put(checkpoint, [{ versionId, vector: random.vector(8) }]);
    const parts = await store.embeddings.missing(versionId, 500);
    const place = (id: string) => saved.findIndex((checkpoint) => checkpoint.id === id);
    const vectors = parts.map((part) => ({ ...part, vector: vectorAt(0.99 - place(part.id) / 100, query, random) }));
    await store.embeddings.putVectors(versionId, vectors);
    for (const limit of [1, 5, 12]) {
      const { semantic } = await store.candidates({ filter: {}, limit, semantic: { versionId, vector: query } });
      assert.deepEqual(
        semantic.map(({ id }) => id),
        saved.slice(0, limit).map(({ id }) => id),
      );
    }
  }),

  recallCase("replaces and deletes all pieces of a record together with it", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const random = randomness(11);
    const query = random.vector(8);
    const before = sampleCheckpoint(project, { description: longText(random) });
    await store.put(before, [{ versionId, vector: random.vector(8) }]);
    const stale = (await store.embeddings.missing(versionId, 100)).map((part) => ({ ...part, vector: query }));
    await store.embeddings.putVectors(versionId, stale);

    const after = { ...before, description: longText(random), revision: 2 };
    assert.equal(await store.replace(after, [{ versionId, vector: vectorAt(0, query, random) }]), true);
    assert.equal((await store.embeddings.counts(versionId)).partVectors, 0);
    const [hit] = (await store.candidates({ filter: {}, limit: 5, semantic: { versionId, vector: query } })).semantic;
    assert.ok(hit!.score < 0.9, `a piece of the old text is still found: ${hit!.score}`);
    assert.equal(await store.embeddings.putVectors(versionId, stale), 0);
    // A record that was deleted and saved again under its id has revision 1 again, but another text.
    assert.equal(await store.purge([before.id]), 1);
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 0, vectors: 0, parts: 0, partVectors: 0 });
    await store.put({ ...after, revision: 1 });
    assert.equal(await store.embeddings.putVectors(versionId, stale), 0);
    const fresh = (await store.embeddings.missing(versionId, 100)).map((part) => ({ ...part, vector: query }));
    assert.equal(await store.embeddings.putVectors(versionId, fresh), fresh.length);
    assert.deepEqual(await store.embeddings.missing(versionId, 100), []);
  }),

  recallCase("makes a version current only when all pieces have vectors", async (store, project) => {
    const first = await store.embeddings.addVersion(FIRST);
    const second = await store.embeddings.addVersion(SECOND);
    const random = randomness(12);
    await store.put(sampleCheckpoint(project, { description: longText(random) }), [
      { versionId: first.versionId, vector: random.vector(8) },
    ]);
    const pieces = await store.embeddings.missing(second.versionId, 100);
    for (const [index, piece] of pieces.entries()) {
      assert.equal(await store.embeddings.makeCurrent(second.versionId), "incomplete", `piece ${index} of ${pieces.length}`);
      await store.embeddings.putVectors(second.versionId, [{ ...piece, vector: random.vector(12) }]);
    }
    assert.equal(await store.embeddings.makeCurrent(second.versionId), "switched");
    assert.equal(await store.embeddings.dropVersion(first.versionId), 1);
  }),
];
