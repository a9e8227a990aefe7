import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { type Knowledge, knowledgeHash } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import type { KnowledgeStore } from "../ports/knowledge-store.ts";
import { errorSignature } from "../text/normalise-error.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, freshProject } from "./checkpoint-samples.ts";

export function sampleKnowledge(changes: Partial<Knowledge> = {}): Knowledge {
  const content = {
    kind: "faq" as const,
    category: "Продукты - Вклады",
    subcategory: "Рублевые - Мои условия",
    question: "Как открыть вклад Мои условия?",
    answer: "Посетите отделение банка или воспользуйтесь мобильным приложением.",
    ...changes,
  };
  return {
    id: randomUUID(),
    contentHash: knowledgeHash(content),
    successes: 0,
    uses: 0,
    outdated: 0,
    source: "",
    anchors: [{ kind: "symbol", value: "parse", path: "src/парсер.ts", hash: "1".repeat(64), lines: 4 }],
    supersededBy: "",
    createdAt: "2026-01-02T03:04:05.678Z",
    updatedAt: "2026-01-02T03:04:05.678Z",
    createdOrder: changes.createdAt ?? "2026-01-02T03:04:05.678Z",
    revision: 1,
    ...content,
  };
}

/** The contract of knowledge stores. */
export const KNOWLEDGE_CASES: readonly StorageCase[] = [
  on("returns exactly what was put, whatever the text", async (store) => {
    const records = [
      sampleKnowledge(),
      ...AWKWARD_TEXTS.map((text) =>
        sampleKnowledge({ id: text, category: text, subcategory: text, question: text, answer: text, source: text }),
      ),
    ];
    for (const record of records) assert.equal(await store.put(record), true);
    for (const record of records) assert.deepEqual(await store.get(record.id), record);
    const wanted = records.map(({ id }) => id).toReversed();
    assert.deepEqual(
      (await store.getMany(["never", ...wanted])).records.map(({ id }) => id),
      wanted,
    );
    assert.equal((await store.list({ limit: 100 })).total, records.length);
  }),

  on("accepts the largest record within the limits", async (store) => {
    const fill = (chars: number) => "漢".repeat(chars);
    const record = sampleKnowledge({
      id: fill(LIMITS.idChars),
      category: fill(LIMITS.categoryChars),
      question: fill(LIMITS.questionChars),
      answer: fill(LIMITS.answerChars),
    });
    await store.put(record);
    assert.deepEqual(await store.get(record.id), record);
  }),

  on("keeps the first record when its id is put again, and reports it", async (store) => {
    const record = sampleKnowledge();
    assert.equal(await store.put(record), true);
    assert.equal(await store.put({ ...record, answer: "another" }), false);
    assert.deepEqual(await store.get(record.id), record);
  }),

  on("replaces only the revision that was read, and keeps the counts", async (store) => {
    const record = sampleKnowledge();
    await store.put(record);
    await store.feedback(record.id, { success: true, outdated: false });
    const edited = { ...record, answer: "new", revision: 2, updatedAt: "2026-02-02T00:00:00.000Z" };
    assert.equal(await store.replace({ ...edited, revision: 3 }), false);
    assert.equal(await store.replace(edited), true);
    assert.equal(await store.replace(edited), false);
    assert.deepEqual(await store.get(record.id), { ...edited, uses: 1, successes: 1 });
    assert.equal(await store.replace(sampleKnowledge({ revision: 2 })), false);
  }),

  on("counts every one of concurrent uses", async (store) => {
    const record = sampleKnowledge();
    await store.put(record);
    await Promise.all(
      Array.from({ length: 200 }, (_, index) => store.feedback(record.id, { success: index % 4 === 0, outdated: index % 10 === 0 })),
    );
    assert.deepEqual(await store.get(record.id), { ...record, uses: 200, successes: 50, outdated: 20 });
    assert.equal(await store.feedback("never", { success: true, outdated: false }), undefined);
  }),

  on("marks the records that a new one replaces", async (store) => {
    const [old, other, added] = [sampleKnowledge(), sampleKnowledge(), sampleKnowledge()];
    for (const record of [old, other]) await store.put(record);
    await store.put(added, [], { supersedes: [old.id, "never"] });
    assert.deepEqual(await store.get(old.id), { ...old, supersededBy: added.id, revision: 2 });
    assert.deepEqual(await store.get(other.id), other);
    assert.equal(await store.replace({ ...added, revision: 2 }, undefined, { supersedes: [other.id, added.id] }), true);
    assert.deepEqual(await store.get(other.id), { ...other, supersededBy: added.id, revision: 2 });
    assert.equal((await store.get(added.id))!.supersededBy, "");
    assert.equal(await store.put(added, [], { supersedes: [other.id] }), false);
    assert.equal((await store.get(other.id))!.revision, 2);
  }),

  on("deletes permanently and only once", async (store) => {
    const record = sampleKnowledge();
    await store.put(record);
    assert.equal(await store.purge([record.id]), 1);
    assert.equal(await store.purge([record.id]), 0);
    assert.equal(await store.get(record.id), undefined);
    assert.deepEqual((await store.candidates({ filter: {}, limit: 10, text: record.question })).keyword, []);
    assert.equal(await store.put(record), true);
  }),

  on("lists newest first and pages without gap or overlap, within a filter", async (store) => {
    const at = (index: number) => `2026-03-01T00:00:00.${String(index >= 3 && index <= 6 ? 500 : 503 - index).padStart(3, "0")}Z`;
    const inOrder = Array.from({ length: 10 }, (_, index) => sampleKnowledge({ id: `id-${index}`, createdAt: at(index), kind: "skill" }));
    for (const record of [...inOrder].reverse()) await store.put(record);
    await store.put(sampleKnowledge({ kind: "faq" }));
    for (const limit of [1, 3, 100]) {
      const seen: string[] = [];
      let after: { at: string; id: string } | undefined;
      do {
        const { records, total } = await store.list({ filter: { kind: "skill" }, limit, after });
        assert.equal(total, 10);
        seen.push(...records.map(({ id }) => id));
        const last = records.at(-1);
        after = last && { at: last.createdAt, id: last.id };
      } while (after);
      assert.deepEqual(
        seen,
        inOrder.map(({ id }) => id),
      );
    }
  }),

  on("filters before ranking", async (store) => {
    for (let index = 0; index < 60; index++) await store.put(sampleKnowledge({ category: "common", answer: `deploy ${index}` }));
    const rare = sampleKnowledge({ category: "100%_'\"", subcategory: "s", answer: "deploy once", kind: "skill", source: "file" });
    await store.put(rare);
    for (const filter of [
      { category: rare.category },
      { kind: "skill" },
      { source: "file" },
      { category: rare.category, subcategory: "s" },
    ] as const)
      assert.deepEqual(
        (await store.candidates({ filter, limit: 1, text: "deploy" })).keyword.map(({ id }) => id),
        [rare.id],
      );
    assert.deepEqual((await store.candidates({ filter: { category: "100" }, limit: 5, text: "deploy" })).keyword, []);
  }),

  on("finds records by keyword in any script, also in the answer and the category", async (store) => {
    const russian = sampleKnowledge();
    const english = sampleKnowledge({ category: "Ops", subcategory: "", question: "How to deploy?", answer: "Run the releaser." });
    await store.put(russian);
    await store.put(english);
    const first = async (text: string) => (await store.candidates({ filter: {}, limit: 5, text })).keyword[0]?.id;
    assert.equal(await first("открыть ВКЛАД"), russian.id);
    assert.equal(await first("мобильным приложением"), russian.id);
    assert.equal(await first("releaser"), english.id);
    assert.equal(await first("продукты"), russian.id);
  }),

  on("finds by vector, keeps vectors on an edit without new ones, and deletes them with the record", async (store) => {
    const version = await store.embeddings.addVersion({ model: "m", version: "1", dimension: 2 });
    const { versionId } = version;
    const [near, far] = [sampleKnowledge(), sampleKnowledge()];
    await store.put(near, [{ versionId, vector: Float32Array.of(1, 0) }]);
    await store.put(far, [{ versionId, vector: Float32Array.of(0, 1) }]);
    const query = Float32Array.of(1, 0);
    const semantic = async () =>
      (await store.candidates({ filter: {}, limit: 5, semantic: { versionId, vector: query } })).semantic.map(({ id }) => id);
    assert.deepEqual(await semantic(), [near.id, far.id]);
    assert.equal(await store.replace({ ...near, answer: "edited", revision: 2 }), true);
    assert.deepEqual(await semantic(), [near.id, far.id]);
    assert.equal(await store.replace({ ...near, question: "other", revision: 3 }, [{ versionId, vector: Float32Array.of(0, 1) }]), true);
    assert.equal((await store.similarities(versionId, query, [near.id])).get(near.id), 0);
    assert.equal(await store.replace({ ...near, question: "third", revision: 4 }, []), true);
    assert.deepEqual(
      (await store.embeddings.missing(versionId, 10)).map(({ id, revision, text }) => ({ id, revision, text })),
      [{ id: near.id, revision: 4, text: "third" }],
    );
    assert.equal(await store.embeddings.putVectors(versionId, [{ id: near.id, revision: 4, piece: 0, text: "third", vector: query }]), 1);
    await store.delete([near.id], "2026-01-01T00:00:00.000Z");
    assert.deepEqual(await semantic(), [far.id]);
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 1, vectors: 1, parts: 0, partVectors: 0 });
  }),

  on("finds only remediations by error signature", async (store) => {
    const question = "TypeError: Cannot read properties of undefined (reading 'id')\n    at load (/srv/a/b.js:10:20)";
    const remedy = sampleKnowledge({ kind: "remediation", category: "js", question });
    await store.put(remedy);
    await store.put(sampleKnowledge({ kind: "faq", question }));
    const signature = errorSignature("TypeError: Cannot read properties of undefined (reading 'name')\n    at save (/home/x.js:1:2)");
    assert.deepEqual(await store.withSignature(signature, {}, 10), [remedy.id]);
    assert.deepEqual(await store.withSignature(signature, { category: "py" }, 10), []);
    assert.deepEqual(await store.withSignature("", {}, 10), []);
  }),

  on("applies all of a batch or nothing", async (store) => {
    const [kept, changed, gone, added] = [1, 2, 3, 4].map((index) => sampleKnowledge({ id: `${index}`, source: "s" })) as [
      Knowledge,
      Knowledge,
      Knowledge,
      Knowledge,
    ];
    for (const record of [kept, changed, gone]) await store.put(record);
    await store.feedback(changed.id, { success: true, outdated: false });
    const batch = {
      add: [{ record: added, vectors: [] }],
      replace: [{ record: { ...changed, answer: "new", revision: 2 } }],
      remove: [{ id: gone.id, revision: 1 }],
    };
    const before = await store.list({ limit: 10 });
    const wrong = [
      { ...batch, remove: [{ id: gone.id, revision: 2 }] },
      { ...batch, remove: [{ id: "never", revision: 1 }] },
      { ...batch, replace: [{ record: { ...changed, revision: 3 } }] },
      { ...batch, add: [{ record: kept }] },
    ];
    for (const one of wrong) assert.equal(await store.apply(one), "changed meanwhile");
    assert.deepEqual(await store.list({ limit: 10 }), before);
    assert.equal(await store.apply(batch), "applied");
    assert.deepEqual(
      (await store.marks()).map(({ id, revision }) => [id, revision]),
      [
        ["1", 1],
        ["2", 2],
        ["4", 1],
      ],
    );
    assert.equal((await store.get(changed.id))?.successes, 1);
    assert.equal(await store.apply(batch), "changed meanwhile");
  }),

  on("applies one of several equal concurrent batches", async (store) => {
    const batch = { add: [{ record: sampleKnowledge({ id: "a" }) }, { record: sampleKnowledge({ id: "b" }) }], replace: [], remove: [] };
    const answers = await Promise.all(Array.from({ length: 8 }, () => store.apply(batch)));
    assert.equal(answers.filter((answer) => answer === "applied").length, 1);
    assert.equal((await store.marks()).length, 2);
  }),

  {
    name: "stores shared knowledge in its own database, which is not listed as a project",
    async run(storage) {
      const project = freshProject();
      const record = sampleKnowledge();
      await (await storage.create(SHARED_PROJECT_ID)).knowledge.put(record);
      assert.deepEqual(await (await storage.find(SHARED_PROJECT_ID))?.knowledge.get(record.id), record);
      assert.equal(await (await storage.create(project)).knowledge.get(record.id), undefined);
      assert.ok(!(await storage.projects()).includes(SHARED_PROJECT_ID));
    },
  },
];

function on(name: string, run: (store: KnowledgeStore) => Promise<void>): StorageCase {
  return { name: `knowledge: ${name}`, run: async (storage) => run((await storage.create(freshProject())).knowledge) };
}
