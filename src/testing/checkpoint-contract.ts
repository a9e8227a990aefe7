import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Checkpoint, CheckpointSort } from "../model/checkpoint.ts";
import type { CheckpointStore } from "../ports/checkpoint-store.ts";
import type { Storage } from "../ports/storage.ts";
import { AWKWARD_TEXTS, freshProject, largestCheckpoint, sampleCheckpoint } from "./checkpoint-samples.ts";

export interface StorageCase {
  readonly name: string;
  run(storage: Storage): Promise<void>;
}

/** The contract of checkpoint stores. */
export const CHECKPOINT_CASES: readonly StorageCase[] = [
  on("returns exactly what was put, keys in the same order", async (store, project) => {
    const saved = sampleCheckpoint(project, {
      context: { zebra: "1", apple: "2", "10": "3", "9": "4", "": "empty key", __proto__x: "5" },
      tags: ["b", "a", "B2"],
      tokenCount: 0,
      description: "",
    });
    await store.put(saved);
    const read = await store.get(saved.id);
    assert.deepEqual(read, saved);
    assert.equal(JSON.stringify(read), JSON.stringify({ ...saved }));
  }),

  on("returns nothing for an unknown id", async (store) => {
    assert.equal(await store.get("never"), undefined);
    assert.equal(await store.purge(["never"]), 0);
    assert.equal(await store.get(""), undefined);
    assert.equal(await store.get("%"), undefined);
  }),

  on("keeps the first record when the same id is put again", async (store, project) => {
    const saved = sampleCheckpoint(project);
    await store.put(saved);
    await store.put(saved);
    await store.put({ ...saved, summary: "another", tags: ["other", "tags"] });
    assert.deepEqual(await store.get(saved.id), saved);
    assert.equal((await store.list(everything)).total, 1);
  }),

  on("counts tags regardless of case, the most frequent first", async (store, project) => {
    assert.deepEqual(await store.tags(10), []);
    for (const tags of [["parser", "wip"], ["Parser", "lexer"], ["PARSER"], ["lexer"], []])
      await store.put(sampleCheckpoint(project, { tags }));
    assert.deepEqual(await store.tags(10), [
      { tag: "PARSER", count: 3 },
      { tag: "lexer", count: 2 },
      { tag: "wip", count: 1 },
    ]);
    assert.deepEqual(await store.tags(1), [{ tag: "PARSER", count: 3 }]);
  }),

  on("marks the records that a new one replaces", async (store, project) => {
    const [old, other, added] = [sampleCheckpoint(project), sampleCheckpoint(project), sampleCheckpoint(project)];
    for (const record of [old, other]) await store.put(record);
    await store.put(added, [], { supersedes: [old.id, "never"] });
    assert.deepEqual(await store.get(old.id), { ...old, supersededBy: added.id, revision: 2 });
    assert.deepEqual(await store.get(other.id), other);
    assert.equal(await store.replace({ ...added, revision: 2 }, [], { supersedes: [other.id, added.id] }), true);
    assert.deepEqual(await store.get(other.id), { ...other, supersededBy: added.id, revision: 2 });
    assert.equal((await store.get(added.id))!.supersededBy, "");
    await store.put(added, [], { supersedes: [other.id] });
    assert.equal((await store.get(other.id))!.revision, 2);
  }),

  on("filters by text in summary, description and tags, in any form, before it counts and lists", async (store, project) => {
    const put = (id: string, summary: string, change: object = {}) => store.put(sampleCheckpoint(project, { id, summary, ...change }));
    await put("a", "The parser reads blocks", { description: "Errors have line numbers." });
    await put("b", "Parsers of dates", { tags: ["errors"] });
    await put("c", "Nothing of the kind");
    const found = async (text: string) => {
      const { checkpoints, total } = await store.list({ limit: 10, offset: 0, sortBy: "created_at", filter: { text } });
      assert.equal(total, checkpoints.length);
      const days = await store.days({ utcOffsetMinutes: 0, limit: 10, filter: { text } });
      assert.equal(
        days.reduce((sum, { count }) => sum + count, 0),
        total,
      );
      return checkpoints.map(({ id }) => id).sort();
    };
    assert.deepEqual(await found("PARSER error"), ["a", "b"]);
    assert.deepEqual(await found("parser line"), ["a"]);
    assert.deepEqual(await found("parser zebra"), []);
    assert.deepEqual(await found("\" ' ( * : & |"), ["a", "b", "c"]);
  }),

  on("filters by context pairs before it counts, lists and ranks", async (store, project) => {
    const save = (branch: string, session: string, createdAt: string) => {
      const checkpoint = sampleCheckpoint(project, {
        context: { branch, session_id: session, 'it\'s "odd"': "100%" },
        createdAt,
        createdOrder: createdAt,
      });
      return store.put(checkpoint).then(() => checkpoint.id);
    };
    const one = await save("main", "s1", "2026-01-01T23:30:00.000Z");
    const two = await save("main", "s2", "2026-01-02T00:30:00.000Z");
    await save("dev", "s1", "2026-01-03T12:00:00.000Z");
    const list = (context: Record<string, string>) => store.list({ ...everything, filter: { context } });
    assert.deepEqual(ids(await list({ branch: "main" })), [two, one]);
    assert.deepEqual(ids(await list({ branch: "main", session_id: "s1" })), [one]);
    assert.equal((await list({ 'it\'s "odd"': "100%" })).total, 3);
    assert.equal((await list({ 'it\'s "odd"': "100" })).total, 0);
    assert.equal((await list({ toString: "x" })).total, 0);
    await store.put(sampleCheckpoint(project, { context: { note: '{"branch":"quoted"}', branch: "x" } }));
    assert.equal((await list({ branch: "quoted" })).total, 0);
    const { keyword } = await store.candidates({ filter: { context: { session_id: "s2" } }, limit: 1, text: "parser" });
    assert.deepEqual(
      keyword.map(({ id }) => id),
      [two],
    );
    const main = { filter: { context: { branch: "main" } }, limit: 10 };
    assert.deepEqual(await store.days({ ...main, utcOffsetMinutes: 0 }), [
      { day: "2026-01-02", count: 1 },
      { day: "2026-01-01", count: 1 },
    ]);
    assert.deepEqual(await store.days({ ...main, utcOffsetMinutes: 60 }), [{ day: "2026-01-02", count: 2 }]);
    assert.deepEqual(await store.days({ utcOffsetMinutes: -60, limit: 1, filter: { context: { session_id: "s1" } } }), [
      { day: "2026-01-03", count: 1 },
    ]);
  }),

  on("deletes permanently and only once", async (store, project) => {
    const [kept, gone] = [sampleCheckpoint(project), sampleCheckpoint(project)];
    await store.put(kept);
    await store.put(gone);
    assert.equal(await store.purge([gone.id]), 1);
    assert.equal(await store.purge([gone.id]), 0);
    assert.equal(await store.get(gone.id), undefined);
    assert.deepEqual(await store.list(everything), { checkpoints: [kept], damaged: [], total: 1 });
    await store.put(gone);
    assert.deepEqual(await store.get(gone.id), gone);
  }),

  on("accepts any text in every field", async (store, project) => {
    const saved = sampleCheckpoint(project, {
      id: AWKWARD_TEXTS.join("").slice(0, 90),
      summary: AWKWARD_TEXTS.join(" "),
      description: AWKWARD_TEXTS.join("\n"),
      context: Object.fromEntries(AWKWARD_TEXTS.map((text) => [text, text])),
      tags: AWKWARD_TEXTS,
      anchors: AWKWARD_TEXTS.map((value) => ({ kind: "file", value })),
      supersededBy: AWKWARD_TEXTS.join("").slice(0, 90),
    });
    await store.put(saved);
    assert.deepEqual(await store.get(saved.id), saved);
    assert.deepEqual((await store.list(everything)).checkpoints, [saved]);
    assert.equal(await store.purge([saved.id]), 1);
  }),

  on("distinguishes ids by every character", async (store, project) => {
    const ids = ["a", "A", "a ", "á", "a\u0301", "%", "_", "a%"];
    for (const id of ids) await store.put(sampleCheckpoint(project, { id, summary: `the one called ${id}` }));
    assert.equal((await store.list(everything)).total, ids.length);
    for (const id of ids) assert.equal((await store.get(id))?.summary, `the one called ${id}`);
  }),

  on("accepts the largest record within the limits", async (store, project) => {
    const saved = largestCheckpoint(project);
    await store.put(saved);
    assert.deepEqual(await store.get(saved.id), saved);
  }),

  on("keeps times to the millisecond, from the first year to the last", async (store, project) => {
    const times = [
      "9999-12-31T23:59:59.999Z",
      "2026-02-28T23:59:59.001Z",
      "2026-02-28T23:59:59.000Z",
      "1969-12-31T23:59:59.999Z",
      "1883-11-18T12:00:00.000Z",
      "0099-01-01T00:00:00.010Z",
      "0001-01-01T00:00:00.000Z",
      "0000-02-29T12:34:56.789Z",
    ];
    for (const createdAt of times.toReversed()) await store.put(sampleCheckpoint(project, { createdAt, updatedAt: createdAt }));
    const listed = await store.list(everything);
    assert.deepEqual(
      listed.checkpoints.map(({ createdAt }) => createdAt),
      times,
    );
    assert.deepEqual(
      listed.checkpoints.map(({ updatedAt }) => updatedAt),
      times,
    );
  }),

  ...(["created_at", "updated_at"] as const).map((sortBy) =>
    on(`lists newest first by ${sortBy}, ties by id`, async (store, project) => {
      const inOrder = ordered(project, sortBy);
      for (const checkpoint of shuffled(inOrder)) await store.put(checkpoint);
      assert.deepEqual(ids(await store.list({ ...everything, sortBy })), idsOf(inOrder));
    }),
  ),

  ...(["created_at", "updated_at"] as const).map((sortBy) =>
    on(`pages by ${sortBy} without gap or overlap, by offset and by cursor`, async (store, project) => {
      const inOrder = ordered(project, sortBy);
      for (const checkpoint of shuffled(inOrder)) await store.put(checkpoint);
      for (const limit of [1, 2, 3, 5, 100]) {
        const byOffset: string[] = [];
        const byCursor: string[] = [];
        for (let offset = 0; offset < inOrder.length; offset += limit) {
          const page = await store.list({ limit, offset, sortBy });
          assert.equal(page.total, inOrder.length);
          byOffset.push(...ids(page));
        }
        let after: { at: string; id: string } | undefined;
        do {
          const page = await store.list({ limit, offset: 0, sortBy, after });
          assert.equal(page.total, inOrder.length);
          byCursor.push(...ids(page));
          const last = page.checkpoints.at(-1);
          after = last && { at: sortBy === "created_at" ? last.createdAt : last.updatedAt, id: last.id };
        } while (after);
        assert.deepEqual(byOffset, idsOf(inOrder));
        assert.deepEqual(byCursor, idsOf(inOrder));
      }
    }),
  ),

  on("continues after a cursor whose record was deleted, and combines cursor and offset", async (store, project) => {
    const inOrder = ordered(project, "created_at");
    for (const checkpoint of inOrder) await store.put(checkpoint);
    const { createdAt: at, id } = inOrder[2]!;
    await store.purge([id]);
    const rest = { limit: 100, sortBy: "created_at", after: { at, id } } as const;
    assert.deepEqual(ids(await store.list({ ...rest, offset: 0 })), idsOf(inOrder).slice(3));
    assert.deepEqual(ids(await store.list({ ...rest, offset: 2 })), idsOf(inOrder).slice(5));
  }),

  on("returns an empty page beyond the end, with the exact total", async (store, project) => {
    assert.deepEqual(await store.list(everything), { checkpoints: [], damaged: [], total: 0 });
    await store.put(sampleCheckpoint(project));
    assert.deepEqual(await store.list({ ...everything, offset: 1 }), { checkpoints: [], damaged: [], total: 1 });
    assert.deepEqual(await store.list({ ...everything, offset: 1_000_000 }), { checkpoints: [], damaged: [], total: 1 });
    const long = { at: "0000-01-01T00:00:00.000Z", id: "x" };
    assert.deepEqual(await store.list({ ...everything, after: long }), { checkpoints: [], damaged: [], total: 1 });
  }),

  on("copies records in and out, so that a caller's later changes have no effect", async (store, project) => {
    const given = structuredClone(sampleCheckpoint(project)) as unknown as {
      tags: string[];
      context: Record<string, string>;
      id: string;
    };
    await store.put(given as unknown as Checkpoint);
    given.tags.push("later");
    given.context.later = "yes";
    const read = (await store.get(given.id)) as unknown as typeof given;
    assert.deepEqual(read.tags, ["parser"]);
    assert.deepEqual(read.context, { branch: "main" });
    read.tags.push("later");
    const [listed] = (await store.list(everything)).checkpoints as unknown as [typeof given];
    assert.deepEqual(listed.tags, ["parser"]);
    listed.context.later = "yes";
    assert.deepEqual((await store.get(given.id))?.context, { branch: "main" });
  }),

  on("stores all of several concurrent puts", async (store, project) => {
    const many = Array.from({ length: 200 }, (_, index) => sampleCheckpoint(project, { tags: [`number ${index}`] }));
    await Promise.all(many.map((checkpoint) => store.put(checkpoint)));
    const { checkpoints, total } = await store.list({ ...everything, limit: 1_000 });
    assert.equal(total, many.length);
    assert.deepEqual(new Map(checkpoints.map((one) => [one.id, one])), new Map(many.map((one) => [one.id, one])));
  }),

  on("stores one of several concurrent puts of the same id", async (store, project) => {
    const versions = Array.from({ length: 20 }, (_, index) => sampleCheckpoint(project, { id: "same", tags: [`version ${index}`] }));
    await Promise.all(versions.map((checkpoint) => store.put(checkpoint)));
    const { checkpoints, total } = await store.list(everything);
    assert.equal(total, 1);
    assert.ok(versions.some(({ tags }) => tags[0] === checkpoints[0]?.tags[0]));
    assert.equal(checkpoints[0]?.tags.length, 1);
  }),

  on("lists a page and a total from the same snapshot during writes", async (store, project) => {
    let writing = true;
    const writer = (async () => {
      for (let count = 0; count < 100; count++) await Promise.all([0, 1, 2].map(() => store.put(sampleCheckpoint(project))));
    })().finally(() => {
      writing = false;
    });
    do {
      const { checkpoints, total } = await store.list({ ...everything, limit: 1_000 });
      assert.equal(checkpoints.length, total);
      await nextTurn(); // a synchronous store must not starve the writer
    } while (writing);
    await writer;
    assert.equal((await store.list(everything)).total, 300);
  }),
];

const everything = { limit: 100, offset: 0, sortBy: "created_at" } as const;

function on(name: string, run: (store: CheckpointStore, project: string) => Promise<void>): StorageCase {
  return {
    name,
    async run(storage) {
      const project = freshProject();
      await run((await storage.create(project)).checkpoints, project);
    },
  };
}

/** Ten records in order, four of them with the same time. The other time is in reverse order. */
function ordered(project: string, sortBy: CheckpointSort): Checkpoint[] {
  const time = (index: number) => `2026-03-01T00:00:00.${String(index).padStart(3, "0")}Z`;
  return Array.from({ length: 10 }, (_, index) => {
    const newestFirst = time(index >= 3 && index <= 6 ? 500 : 503 - index);
    const other = time(index);
    return sampleCheckpoint(project, {
      id: `id-${index}`,
      createdAt: sortBy === "created_at" ? newestFirst : other,
      updatedAt: sortBy === "updated_at" ? newestFirst : other,
    });
  });
}

/** Shuffles deterministically. */
function shuffled<T>(items: readonly T[]): T[] {
  return [
    ...items.filter((_, index) => index % 3 === 1),
    ...items.filter((_, index) => index % 3 === 2),
    ...items.filter((_, index) => index % 3 === 0),
  ];
}

function idsOf(checkpoints: readonly Checkpoint[]): string[] {
  return checkpoints.map(({ id }) => id);
}

function ids(page: { readonly checkpoints: readonly Checkpoint[] }): string[] {
  return idsOf(page.checkpoints);
}
