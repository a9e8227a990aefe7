import assert from "node:assert/strict";
import type { Checkpoint } from "../model/checkpoint.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore } from "../ports/checkpoint-store.ts";
import type { Unembedded } from "../ports/embedding-store.ts";
import { splitPieces } from "../text/pieces.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, sampleCheckpoint } from "./checkpoint-samples.ts";
import { PIECE_CASES } from "./piece-cases.ts";
import { recallModel } from "./recall-model.ts";
import { FIRST, longText, type Randomness, randomness, recallCase, SECOND, wholeOf } from "./recall-samples.ts";

const SPACES = [FIRST, SECOND, { ...FIRST, version: "2" }];
const WORDS = ["alder", "birch", "cedar", "hazel", "maple", "rowan", "willow"];
const SEEDS = [1, 2, 3, 4, 5, 6];
const STEPS = 70;

/** The guarantees of every store with semantic and keyword search, checked on checkpoints. */
export const RECALL_CASES: readonly StorageCase[] = [
  ...SEEDS.map((seed) =>
    recallCase(`agrees with a simple model after any sequence of writes, switches and searches (seed ${seed})`, (store, project) =>
      interleave(store, project, randomness(seed)),
    ),
  ),

  recallCase("refuses a vector of an older revision", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const before = sampleCheckpoint(project);
    await store.put(before);
    const vector = randomness(1).vector(8);
    const after = { ...before, summary: "edited", revision: 2 };
    assert.equal(await store.replace(after), true);
    const whole = { id: before.id, piece: 0, text: checkpointText(after), vector };
    assert.equal(await store.embeddings.putVectors(versionId, [{ ...whole, revision: 1 }]), 0);
    assert.equal(await store.embeddings.putVectors(versionId, [{ ...whole, revision: 2 }]), 1);
    assert.equal(await store.embeddings.putVectors(versionId, [{ ...whole, id: "gone", revision: 1 }]), 0);
    assert.deepEqual(await store.embeddings.missing(versionId, 10), []);
  }),

  recallCase("makes the first version current, and another only when all records have vectors", async (store, project) => {
    const first = await store.embeddings.addVersion(FIRST);
    assert.deepEqual([first.isCurrent, (await store.embeddings.addVersion(FIRST)).versionId], [true, first.versionId]);
    const second = await store.embeddings.addVersion(SECOND);
    assert.equal(second.isCurrent, false);
    const saved = sampleCheckpoint(project);
    await store.put(saved, [{ versionId: first.versionId, vector: randomness(1).vector(8) }]);
    assert.equal(await store.embeddings.makeCurrent(second.versionId), "incomplete");
    assert.deepEqual(
      (await store.embeddings.missing(second.versionId, 10)).map(({ id, revision }) => [id, revision]),
      [[saved.id, 1]],
    );
    await store.embeddings.putVectors(second.versionId, [{ ...wholeOf(saved), vector: randomness(2).vector(12) }]);
    assert.equal(await store.embeddings.makeCurrent(second.versionId), "switched");
    await assert.rejects(store.embeddings.dropVersion(second.versionId), { code: "conflict" });
    assert.equal(await store.embeddings.dropVersion(first.versionId), 1);
    assert.deepEqual(
      (await store.embeddings.versions()).map(({ model, isCurrent }) => [model, isCurrent]),
      [["second", true]],
    );
  }),

  recallCase("finds nothing in a deleted version and refuses to fill it", async (store, project) => {
    await store.embeddings.addVersion(SECOND);
    const gone = await store.embeddings.addVersion(FIRST);
    const saved = sampleCheckpoint(project);
    const vector = randomness(1).vector(8);
    await store.put(saved, [{ versionId: gone.versionId, vector }]);
    await store.embeddings.dropVersion(gone.versionId);
    const semantic = { versionId: gone.versionId, vector };
    assert.deepEqual((await store.candidates({ filter: {}, limit: 5, semantic })).semantic, []);
    assert.equal((await store.similarities(gone.versionId, vector, [saved.id])).size, 0);
    await assert.rejects(store.embeddings.missing(gone.versionId, 5), { code: "not_found" });
    await assert.rejects(store.embeddings.putVectors(gone.versionId, [{ ...wholeOf(saved), vector }]), { code: "not_found" });
    await assert.rejects(store.embeddings.makeCurrent(gone.versionId), { code: "not_found" });
  }),

  ...PIECE_CASES,

  recallCase("filters before ranking", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const random = randomness(3);
    const query = random.vector(8);
    for (let i = 0; i < 120; i++)
      await store.put(sampleCheckpoint(project, { summary: "common words", tags: ["common"] }), [{ versionId, vector: query }]);
    const rare = sampleCheckpoint(project, { summary: "common words", tags: ["common", "Rare"] });
    await store.put(rare, [{ versionId, vector: query.map((value) => -value) }]); // the opposite vector
    const found = await store.candidates({ filter: { tags: ["rare"] }, limit: 3, text: "common", semantic: { versionId, vector: query } });
    assert.deepEqual([found.keyword.map(({ id }) => id), found.semantic.map(({ id }) => id)], [[rare.id], [rare.id]]);
    if (store.matching) {
      assert.deepEqual(await store.matching({ tags: ["rare"] }, 5), [rare.id]);
      assert.equal(await store.matching({ tags: ["common"] }, 5), "many");
      assert.equal(await store.matching({}, 5), "all");
    }
  }),

  recallCase("returns up to `limit` records of each ranking", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(FIRST);
    const random = randomness(5);
    for (let i = 0; i < 8; i++)
      await store.put(sampleCheckpoint(project, { summary: "a common word" }), [{ versionId, vector: random.vector(8) }]);
    const query = { filter: {}, limit: 6, text: "common", semantic: { versionId, vector: random.vector(8) } };
    const all = await store.candidates(query);
    assert.deepEqual([all.keyword.length, all.semantic.length], [6, 6]);
    const fewer = await store.candidates({ ...query, semanticLimit: 2 });
    assert.deepEqual([fewer.keyword.length, fewer.semantic], [6, all.semantic.slice(0, 2)]);
  }),

  recallCase("treats any query text as search terms, never as syntax", async (store, project) => {
    const saved = sampleCheckpoint(project, { summary: "the willow stands alone" });
    await store.put(saved);
    const random = randomness(9);
    const symbols = [
      ...AWKWARD_TEXTS,
      ..."\"'()*:^-+&|!<>\\%_?~@#{}$[];,./`",
      "AND",
      "OR",
      "NOT",
      "NEAR",
      "NEAR(a b, 2)",
      "col:",
      ":*",
      "<->",
    ];
    for (let i = 0; i < 150; i++) {
      const noise = () =>
        Array.from({ length: random.below(5) }, () => symbols[random.below(symbols.length)]).join(random.below(2) ? " " : "");
      const query = `${noise()} willow ${noise()}`;
      const { keyword } = await store.candidates({ filter: {}, limit: 5, text: query });
      assert.deepEqual(
        keyword.map(({ id }) => id),
        [saved.id],
        JSON.stringify(query),
      );
      await store.candidates({ filter: {}, limit: 5, text: noise() });
    }
  }),
];

async function interleave(store: CheckpointStore, project: string, random: Randomness): Promise<void> {
  const model = recallModel();
  const ids = Array.from({ length: 10 }, (_, i) => `record-${i}`);
  const anyVersion = () => model.versions[random.below(model.versions.length)];
  const vectorsFor = () =>
    model.versions.filter(() => random.below(3) > 0).map(({ versionId, dimension }) => ({ versionId, vector: random.vector(dimension) }));
  const sample = (id: string, revision: number): Checkpoint =>
    sampleCheckpoint(project, {
      id,
      revision,
      summary: Array.from({ length: 3 }, () => WORDS[random.below(WORDS.length)]).join(" "),
      description: random.below(3) === 0 ? longText(random) : "",
      tags: [`tag${random.below(3)}`],
    });

  const steps: (() => Promise<void>)[] = [
    async () => {
      const checkpoint = sample(random.pick(ids), 1);
      const vectors = vectorsFor();
      await store.put(checkpoint, [...vectors, { versionId: 987_654, vector: random.vector(5) }]);
      model.put(checkpoint, vectors);
    },
    async () => {
      const id = random.pick(ids);
      const checkpoint = sample(id, (model.records.get(id)?.checkpoint.revision ?? 0) + 1 + (random.below(4) === 0 ? 1 : 0));
      const vectors = vectorsFor();
      assert.equal(await store.replace(checkpoint, vectors), model.replace(checkpoint, vectors));
    },
    async () => {
      const id = random.pick(ids);
      assert.equal(await store.delete([id], "2026-01-01T00:00:00.000Z"), model.records.delete(id) ? 1 : 0);
    },
    async () => {
      const { versionId, isCurrent } = await store.embeddings.addVersion(random.pick(SPACES));
      model.versions = (await store.embeddings.versions()).slice();
      assert.equal(model.versions.filter((version) => version.isCurrent).length, 1);
      assert.equal(model.versions.find((version) => version.versionId === versionId)?.isCurrent, isCurrent);
    },
    async () => {
      const version = anyVersion();
      if (!version) return;
      const entries = ids.flatMap((id) => {
        const checkpoint = model.records.get(id)?.checkpoint ?? sample(id, 1);
        const revision = checkpoint.revision + (random.below(5) === 0 ? 1 : 0);
        return splitPieces(checkpointText(random.below(5) === 0 ? sample(id, 1) : checkpoint)).flatMap((text, piece) =>
          random.below(2) ? [{ id, revision, piece, text, vector: random.vector(version.dimension) }] : [],
        );
      });
      assert.equal(await store.embeddings.putVectors(version.versionId, entries), model.putVectors(version.versionId, entries));
    },
    async () => {
      const version = anyVersion();
      if (!version) return;
      const complete = model.missing(version.versionId).length === 0;
      assert.equal(await store.embeddings.makeCurrent(version.versionId), complete ? "switched" : "incomplete");
      if (complete) model.versions = model.versions.map((one) => ({ ...one, isCurrent: one.versionId === version.versionId }));
      assert.deepEqual(await store.embeddings.versions(), model.versions);
    },
    async () => {
      const version = anyVersion();
      if (!version || version.isCurrent || random.below(2)) return;
      assert.equal(await store.embeddings.dropVersion(version.versionId), model.dropVersion(version.versionId));
    },
    async () => {
      const version = anyVersion();
      const filter: CheckpointFilter = random.below(2) ? { tags: [`TAG${random.below(3)}`] } : {};
      const text = `${random.pick(WORDS)} ${random.pick(WORDS)}`;
      const semantic = version && { versionId: version.versionId, vector: random.vector(version.dimension) };
      const found = await store.candidates({ filter, limit: 50, text, semantic });
      assert.deepEqual(found.keyword.map(({ id }) => id).sort(), model.withWords(text, filter));
      const right = semantic ? model.nearest(semantic, filter) : new Map();
      assert.deepEqual(found.semantic.map(({ id }) => id).sort(), [...right.keys()].sort());
      for (const { id, score } of found.semantic)
        assert.ok(Math.abs(score - right.get(id)!) < 1e-4, `${id}: ${score}, not ${right.get(id)}`);
      const scores = found.semantic.map(({ score }) => score);
      assert.deepEqual(
        scores,
        [...scores].sort((a, b) => b - a),
      );
    },
    async () => {
      for (const { versionId } of model.versions) {
        const missing = model.missing(versionId);
        assert.deepEqual(
          (await missingInPages(store, versionId, 1 + random.below(9))).map(({ id, piece }) => ({ id, piece })),
          missing,
        );
        const missingParts = missing.filter(({ piece }) => piece > 0).length;
        assert.deepEqual(await store.embeddings.counts(versionId), {
          records: model.records.size,
          vectors: model.records.size - (missing.length - missingParts),
          parts: model.parts(),
          partVectors: model.parts() - missingParts,
        });
      }
    },
  ];
  for (let i = 0; i < STEPS; i++) await random.pick(steps)();
}

async function missingInPages(store: CheckpointStore, versionId: number, limit: number): Promise<Unembedded[]> {
  const found: Unembedded[] = [];
  for (;;) {
    const page = await store.embeddings.missing(versionId, limit, found.at(-1));
    found.push(...page);
    if (page.length < limit) return found;
  }
}
