import assert from "node:assert/strict";
import type { SymbolEntry } from "../model/code-chunk.ts";
import { chunkFingerprint, chunkId } from "../model/code-index.ts";
import { sha256Hex } from "../model/ids.ts";
import type { CodeStore, FileWrite } from "../ports/code-store.ts";
import type { VersionedVector } from "../ports/embedding-store.ts";
import { packFile } from "../text/pack-file.ts";
import type { StorageCase } from "./checkpoint-contract.ts";
import { AWKWARD_TEXTS, freshProject } from "./checkpoint-samples.ts";

const AT = "2026-01-02T03:04:05.678Z";
const LATER = "2026-02-03T04:05:06.789Z";
const SPACE = { model: "contract", version: "1", dimension: 2 };
const NOTHING_LOST = { rows: 0, terms: 0, vectors: 0 };

/** A file with one chunk per text, each with a definition and a use of it. */
export function sampleFile(path: string, texts: readonly string[], vectors: readonly VersionedVector[] = []): FileWrite {
  const symbols: SymbolEntry[] = texts.flatMap((_, index): SymbolEntry[] => [
    { role: "definition", name: `name${index}`, kind: "function", line: index + 1, column: 3, endLine: index + 2, parents: ["Outer"] },
    { role: "reference", name: "shared", line: index + 1, column: 9 },
    { role: "reference", name: "shared", line: index + 1, column: 300 },
  ]);
  return {
    path,
    contentHash: sha256Hex(texts.join("\n")),
    language: path.endsWith(".py") ? "python" : "typescript",
    bytes: Buffer.byteLength(texts.join("\n")),
    lines: texts.length,
    symbols,
    chunks: texts.map((text, index) => ({
      vectors,
      chunk: {
        index,
        kind: index % 2 === 0 ? "function" : "class",
        ...(index % 2 === 0 && { name: `name${index}` }),
        parents: ["Outer"],
        defines: [`name${index}`],
        startLine: index + 1,
        endLine: index + 1,
        text,
      },
    })),
  };
}

const hashOf = (file: FileWrite) => ({ path: file.path, contentHash: file.contentHash });
const byKeyword = async (store: CodeStore, text: string, filter = {}) =>
  (await store.getMany((await store.candidates({ filter, limit: 10, text })).keyword.map(({ id }) => id))).map(({ path }) => path);

/** Asserts that vectors equal the stored ones up to the precision of int8. */
function assertRounded(actual: readonly VersionedVector[] | undefined, expected: readonly VersionedVector[]): void {
  assert.deepEqual(
    actual?.map(({ versionId }) => versionId),
    expected.map(({ versionId }) => versionId),
  );
  for (const [index, { vector }] of expected.entries())
    for (const [place, value] of vector.entries()) assert.ok(Math.abs(actual![index]!.vector[place]! - value) < 0.01);
}

/** The contract of code stores. */
export const CODE_CASES: readonly StorageCase[] = [
  on("returns exactly what was committed, whatever the text", async (store, project) => {
    const file = { ...sampleFile("src/a.ts", AWKWARD_TEXTS), notice: "Cut by lines." };
    const { generation } = await store.commit({ at: AT, files: [file, ...AWKWARD_TEXTS.map((path) => sampleFile(path, [path]))] });
    assert.deepEqual(
      await store.chunksOf("src/a.ts"),
      file.chunks.map(({ chunk }) => ({
        ...chunk,
        id: chunkId(project, "src/a.ts", chunk.index, generation),
        path: "src/a.ts",
        generation,
        language: "typescript",
        contentHash: file.contentHash,
        indexedAt: AT,
      })),
    );
    for (const path of AWKWARD_TEXTS) assert.equal((await store.chunksOf(path))[0]?.text, path);
    assert.equal((await store.filesAt([...AWKWARD_TEXTS, "src/a.ts", "never"])).length, AWKWARD_TEXTS.length + 1);
    const { bytes, lines } = file;
    assert.deepEqual(await store.filesWith([file.contentHash]), [
      {
        path: "src/a.ts",
        contentHash: file.contentHash,
        generation,
        indexedAt: AT,
        language: "typescript",
        bytes,
        lines,
        notice: "Cut by lines.",
      },
    ]);
    await store.commit({ at: AT, files: [sampleFile("src/a.ts", AWKWARD_TEXTS)] });
    assert.ok(!("notice" in (await store.filesAt(["src/a.ts"]))[0]!));
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
  }),

  on("stores a packed file as it stores the plain one", async (store) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const vectors = [{ versionId, vector: Float32Array.of(0.6, 0.8) }];
    const { chunks, symbols, ...facts } = sampleFile("a.ts", ["alpha zeta\n", "beta\n"], vectors);
    const packed = packFile("b.ts", { chunks: chunks.map(({ chunk }) => chunk), symbols });
    const plain = { ...facts, chunks, symbols };
    await store.commit({ at: AT, files: [plain, { ...facts, path: "b.ts", packed, vectors: chunks.map((one) => one.vectors) }] });
    const contentOf = async (path: string) => (await store.chunksOf(path)).map(({ id: _id, path: _path, ...chunk }) => chunk);
    assert.deepEqual(await contentOf("b.ts"), await contentOf("a.ts"));
    const lines = { from: 1, to: 2 };
    assert.deepEqual(await store.symbolsOf("b.ts", lines), await store.symbolsOf("a.ts", lines));
    assert.deepEqual((await byKeyword(store, "zeta")).sort(), ["a.ts", "b.ts"]);
    assert.deepEqual((await store.definitions(["name1"], {}, 10)).map(({ path }) => path).sort(), ["a.ts", "b.ts"]);
    assert.deepEqual(await store.vectorsOf("b.ts"), await store.vectorsOf("a.ts"));
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 4, vectors: 4, parts: 0, partVectors: 0 });
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
  }),

  on("shows only the newest generation of a file, in rows, full text, symbols and vectors", async (store) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const vector = [{ versionId, vector: Float32Array.of(1, 0) }];
    const first = await store.commit({ at: AT, files: [sampleFile("a.ts", ["alpha", "beta", "gamma"], vector)] });
    const [old] = await store.chunksOf("a.ts");
    const second = await store.commit({ at: LATER, files: [sampleFile("a.ts", ["delta"], vector)] });
    assert.ok(second.generation > first.generation);
    assert.deepEqual(await store.getMany([old!.id]), []);
    assert.deepEqual(await byKeyword(store, "alpha beta gamma"), []);
    assert.deepEqual(await byKeyword(store, "delta"), ["a.ts"]);
    assert.deepEqual(await store.definitions(["name1", "name2"], {}, 10), []);
    assert.equal((await store.references("shared", {}, 10)).total, 2);
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 1, vectors: 1, parts: 0, partVectors: 0 });
    assert.equal(
      (await store.candidates({ filter: {}, limit: 9, semantic: { versionId, vector: Float32Array.of(1, 0) } })).semantic.length,
      1,
    );
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
    assert.equal(
      await store.embeddings.putVectors(versionId, [{ id: old!.id, revision: 1, piece: 0, text: "", vector: Float32Array.of(0, 1) }]),
      0,
    );
  }),

  on("replaces a file by one with many chunks", async (store) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const vector = [{ versionId, vector: Float32Array.of(1, 0) }];
    const long = (count: number, word: string) =>
      sampleFile(
        "long.ts",
        Array.from({ length: count }, (_, index) => `${word} ${index}\n`),
        vector,
      );
    const expectOnly = async (count: number, word: string) => {
      const texts = long(count, word).chunks.map(({ chunk }) => chunk.text);
      assert.deepEqual(
        (await store.chunksOf("long.ts")).map(({ text }) => text),
        texts,
      );
      const found = await store.candidates({ filter: {}, limit: 500, text: "alpha beta gamma" });
      assert.equal((await store.getMany(found.keyword.map(({ id }) => id))).filter(({ text }) => texts.includes(text)).length, count);
      assert.equal(found.keyword.length, count);
      assert.deepEqual(await store.embeddings.counts(versionId), { records: count + 1, vectors: count + 1, parts: 0, partVectors: 0 });
      assert.deepEqual(await store.orphans(), NOTHING_LOST);
    };
    const { generation } = await store.commit({ at: AT, files: [sampleFile("other.ts", ["x"], vector), long(210, "alpha")] });
    await expectOnly(210, "alpha");
    const second = await store.commit({ at: LATER, files: [long(120, "beta")] });
    assert.ok(second.generation > generation);
    await expectOnly(120, "beta");
    await store.commit({ at: LATER, files: [long(3, "gamma")] });
    await expectOnly(3, "gamma");
    await store.commit({ at: LATER, files: [long(60, "alpha")] });
    await expectOnly(60, "alpha");
    assert.deepEqual(
      (await store.chunksOf("long.ts", [58, 4, 5])).map(({ startLine }) => startLine),
      [4, 5, 58],
    );
    assert.deepEqual(await store.chunksOf("long.ts", []), []);
  }),

  on("never reuses a chunk id, not even for a file that was removed and indexed again", async (store) => {
    const file = sampleFile("a.ts", ["alpha"]);
    await store.commit({ at: AT, files: [file] });
    const [before] = await store.chunksOf("a.ts");
    assert.deepEqual((await store.commit({ at: AT, removes: [{ ...hashOf(file), contentHash: "0".repeat(64) }] })).removed, []);
    assert.deepEqual((await store.commit({ at: AT, removes: [hashOf(file)] })).removed, ["a.ts"]);
    assert.deepEqual(await store.files(), []);
    assert.deepEqual((await store.commit({ at: AT, removes: [hashOf(file)] })).removed, []);
    await store.commit({ at: AT, files: [file] });
    assert.notEqual((await store.chunksOf("a.ts"))[0]!.id, before!.id);
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
  }),

  on("renames a file with its vectors, with new chunk ids, and finds it by its new path", async (store, project) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const file = sampleFile("old/apple.ts", ["alpha", "beta"], [{ versionId, vector: Float32Array.of(0.6, 0.8) }]);
    await store.commit({ at: AT, files: [file, sampleFile("taken.ts", ["x"])] });
    const rename = { from: "old/apple.ts", to: "new/pear.ts", contentHash: file.contentHash };
    const wrong = [
      { ...rename, contentHash: "0".repeat(64) },
      { ...rename, to: "taken.ts" },
      { ...rename, from: "never.ts" },
    ];
    assert.deepEqual((await store.commit({ at: AT, renames: wrong })).renamed, []);
    const { generation, renamed } = await store.commit({ at: LATER, renames: [rename] });
    assert.deepEqual(renamed, ["new/pear.ts"]);
    const chunks = await store.chunksOf("new/pear.ts");
    assert.deepEqual(
      chunks.map(({ id }) => id),
      [0, 1].map((index) => chunkId(project, "new/pear.ts", index, generation)),
    );
    assert.deepEqual(await store.chunksOf("old/apple.ts"), []);
    assert.deepEqual(await byKeyword(store, "apple"), []);
    assert.deepEqual(await byKeyword(store, "pear"), ["new/pear.ts", "new/pear.ts"]);
    assert.equal((await store.embeddings.counts(versionId)).vectors, 2);
    assert.deepEqual(await store.renames(5), [{ oldPath: "old/apple.ts", newPath: "new/pear.ts", detectedAt: LATER }]);
    const kept = (await store.vectorsOf("new/pear.ts")).get(chunkFingerprint(file.chunks[0]!.chunk));
    assertRounded(kept, [{ versionId, vector: Float32Array.of(0.6, 0.8) }]);
    assert.equal((await store.definitions(["name1"], {}, 5))[0]?.chunkId, chunks[1]!.id);
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
    const { forgottenRenames, freedBytes } = await store.compact(0);
    assert.equal(forgottenRenames, 1);
    assert.ok(freedBytes >= 0);
    assert.deepEqual(await store.renames(5), []);
  }),

  on("finds the words of a comment in any language after its file was renamed", async (store) => {
    const file = sampleFile("alt.ts", ["// Die Verbindungen werden nicht sofort geschlossen, wenn der Server sie noch braucht"]);
    await store.commit({ at: AT, files: [file] });
    assert.deepEqual(await store.pathsWith(["Verbindungen"], {}), ["alt.ts"]);
    await store.commit({ at: LATER, renames: [{ from: "alt.ts", to: "neu.ts", contentHash: file.contentHash }] });
    assert.deepEqual(await store.pathsWith(["Verbindungen"], {}), ["neu.ts"]);
    assert.deepEqual(await byKeyword(store, "Verbindungen"), ["neu.ts"]);
  }),

  on("returns the symbols of a file with their lines, and paths by terms and filter", async (store) => {
    const long = sampleFile("src/long.ts", [`${"x ".repeat(60_000)}needle_at_the_end`]);
    await store.commit({
      at: AT,
      files: [sampleFile("src/a.ts", ["call(first_arg, second)", "other"]), sampleFile("b.py", ["second"]), long],
    });
    const { definitions, references } = await store.symbolsOf("src/a.ts", { from: 2, to: 2 });
    assert.deepEqual(definitions[1], { name: "name1", kind: "function", line: 2, column: 3, endLine: 3, parents: ["Outer"] });
    assert.deepEqual(references, [
      { name: "shared", line: 2, column: 9 },
      { name: "shared", line: 2, column: 300 },
    ]);
    assert.deepEqual((await store.symbolsOf("src/a.ts")).references, []);
    assert.deepEqual(await store.symbolsOf("never.ts"), { definitions: [], references: [] });
    assert.deepEqual(await store.pathsWith([], {}), ["b.py", "src/a.ts", "src/long.ts"]);
    // A text that is too long for the full-text index may have any term.
    assert.deepEqual(await store.pathsWith(["second"], {}), ["b.py", "src/a.ts", "src/long.ts"]);
    assert.deepEqual(await store.pathsWith(["first_arg", "second"], {}), ["src/a.ts", "src/long.ts"]);
    assert.deepEqual(await store.pathsWith(["second"], { glob: "*.py" }), ["b.py"]);
    await store.commit({ at: AT, files: [sampleFile("c.ts", ["use(RetryQueues, requires)"])] });
    assert.deepEqual(await store.pathsWith(["RetryQueues", "requires"], { glob: "c.ts" }), ["c.ts"]);
    assert.deepEqual(await store.pathsWith(["absent"], { languages: ["python"] }), []);
    assert.equal((await store.definitions(["name0"], { glob: "b.py" }, 1))[0]?.endLine, 2);
  }),

  on("returns one vector per version for equal chunks, and removes them for both", async (store) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const vectors = [{ versionId, vector: Float32Array.of(0.6, 0.8) }];
    const file = sampleFile("a.ts", ["same", "other", "same"], vectors);
    const chunks = file.chunks.map(({ chunk, ...rest }) => ({
      ...rest,
      chunk: { ...chunk, name: "twin", defines: [], kind: "text" as const },
    }));
    await store.commit({ at: AT, files: [{ ...file, chunks }] });
    const kept = (await store.vectorsOf("a.ts")).get(chunkFingerprint(chunks[0]!.chunk));
    assertRounded(kept, vectors);
    await store.commit({ at: LATER, files: [{ ...file, chunks: chunks.map((chunk) => ({ ...chunk, vectors: kept! })) }] });
    assert.deepEqual(await store.embeddings.counts(versionId), { records: 3, vectors: 3, parts: 0, partVectors: 0 });
  }),

  on("finds exact definitions and references by path and line, within the filter", async (store) => {
    await store.commit({ at: AT, files: [sampleFile("b.ts", ["x", "y"]), sampleFile("a/c.py", ["x"])] });
    const [chunk] = await store.chunksOf("a/c.py");
    const site = { name: "name0", kind: "function", parents: ["Outer"], endLine: 2, line: 1, column: 3 };
    const found = await store.definitions(["name0", "name9"], {}, 10);
    assert.deepEqual(found[0], { ...site, path: "a/c.py", chunkId: chunk!.id });
    assert.deepEqual(
      found.map(({ path }) => path),
      ["a/c.py", "b.ts"],
    );
    assert.equal((await store.definitions(["name0"], { languages: ["typescript"] }, 10)).length, 1);
    assert.deepEqual(await store.references("shared", {}, 3), {
      total: 6,
      sites: [
        { path: "a/c.py", line: 1, column: 9 },
        { path: "a/c.py", line: 1, column: 300 },
        { path: "b.ts", line: 1, column: 9 },
      ],
    });
    assert.equal((await store.references("shared", { glob: "a/**" }, 9)).total, 2);
    assert.deepEqual(await store.references("Shared", {}, 3), { total: 0, sites: [] });
  }),

  on("filters by language, kind, glob and time before it ranks", async (store) => {
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const vector = [{ versionId, vector: Float32Array.of(1, 0) }];
    await store.commit({ at: AT, files: [sampleFile("src/a.ts", ["word", "word"], vector)] });
    await store.commit({ at: LATER, files: [sampleFile("lib/b.py", ["word"], vector)] });
    const cases: [object, string[]][] = [
      [{ languages: ["python"] }, ["lib/b.py"]],
      [{ kinds: ["class"] }, ["src/a.ts"]],
      [{ glob: "src/**" }, ["src/a.ts", "src/a.ts"]],
      [{ glob: "*.{py,rb}" }, ["lib/b.py"]],
      [{ glob: "!src" }, ["lib/b.py"]],
      [{ changedSince: LATER }, ["lib/b.py"]],
      [{ languages: ["python"], glob: "src/**" }, []],
    ];
    for (const [filter, paths] of cases) {
      assert.deepEqual(await byKeyword(store, "word", filter), paths);
      const { semantic } = await store.candidates({ filter, limit: 9, semantic: { versionId, vector: Float32Array.of(1, 0) } });
      assert.equal(semantic.length, paths.length);
    }
  }),

  on("returns chunks in the order requested, without missing ones", async (store) => {
    await store.commit({ at: AT, files: [sampleFile("a.ts", ["x", "y"]), sampleFile("b.py", ["z"])] });
    const chunks = [...(await store.chunksOf("b.py")), ...(await store.chunksOf("a.ts")).toReversed()];
    const ids = chunks.map(({ id }) => id);
    assert.deepEqual(await store.getMany([ids[0]!, "gone", ...ids.slice(1)]), chunks);
    assert.deepEqual(await store.getMany([]), []);
  }),

  on("counts its content, starting empty", async (store) => {
    const nothing = { files: 0, chunks: 0, definitions: 0, references: 0, bytes: 0, renames: 0, generation: 0, languages: [] };
    assert.deepEqual(await store.counts(), { ...nothing, lastIndexedAt: undefined });
    await store.commit({ at: AT, files: [sampleFile("a.ts", ["x", "y"]), sampleFile("b.py", ["z"]), sampleFile("empty.py", [])] });
    assert.deepEqual(await store.counts(), {
      files: 3,
      chunks: 3,
      definitions: 3,
      references: 6,
      bytes: 4,
      renames: 0,
      generation: 1,
      lastIndexedAt: AT,
      languages: [
        { language: "python", files: 2, chunks: 1 },
        { language: "typescript", files: 1, chunks: 2 },
      ],
    });
    assert.deepEqual(await store.reconcile(), NOTHING_LOST);
    assert.equal((await store.files()).length, 3);
  }),

  on("lists chunks without a vector with the text to embed, and switches when all have one", async (store) => {
    await store.commit({ at: AT, files: [sampleFile("a.ts", ["x", "y"])] });
    const { versionId } = await store.embeddings.addVersion(SPACE);
    const missing = await store.embeddings.missing(versionId, 10);
    assert.deepEqual(missing.map(({ text }) => text).sort(), ["a.ts\nclass name1\ny", "a.ts\nfunction Outer.name0\nx"]);
    const { versionId: next } = await store.embeddings.addVersion({ ...SPACE, version: "2" });
    assert.equal(await store.embeddings.makeCurrent(next), "incomplete");
    const filled = missing.map((piece) => ({ ...piece, vector: Float32Array.of(0, 1) }));
    assert.equal(await store.embeddings.putVectors(next, filled), 2);
    assert.equal(await store.embeddings.makeCurrent(next), "switched");
    assert.equal((await store.similarities(next, Float32Array.of(0, 1), [missing[0]!.id])).get(missing[0]!.id), 1);
    const semantic = { versionId: next, vector: Float32Array.of(0.6, 0.8) };
    const { keyword, similarities } = await store.candidates({ filter: {}, limit: 10, text: "x y", semantic });
    const ids = keyword.map(({ id }) => id);
    assert.deepEqual(ids.toSorted(), missing.map(({ id }) => id).toSorted());
    // A store may return them early; then they must be equal.
    if (similarities) assert.deepEqual(similarities, await store.similarities(semantic.versionId, semantic.vector, ids));
  }),

  on("commits concurrently and atomically: a reader never sees a file missing or twice", async (store) => {
    const of = (round: number) => sampleFile("a.ts", [`one${round}`, `two${round}`]);
    await store.commit({ at: AT, files: [of(0)] });
    const writers = [1, 2, 3, 4, 5, 6].map((round) => store.commit({ at: AT, files: [of(round)] }));
    let writing = true;
    const done = Promise.all(writers).finally(() => {
      writing = false;
    });
    while (writing) {
      const texts = (await store.chunksOf("a.ts")).map(({ text }) => text);
      assert.equal(texts.length, 2);
      assert.equal(texts[0]!.slice(3), texts[1]!.slice(3));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const generations = (await done).map(({ generation }) => generation);
    assert.equal(new Set(generations).size, 6);
    assert.deepEqual(await store.orphans(), NOTHING_LOST);
  }),
];

function on(name: string, run: (store: CodeStore, project: string) => Promise<void>): StorageCase {
  return {
    name: `code: ${name}`,
    async run(storage) {
      const project = freshProject();
      await run((await storage.create(project)).code, project);
    },
  };
}
