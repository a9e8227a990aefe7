import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pathRoles, readQuery } from "../../src/code/query.ts";
import { pastedShares, type RankInput, rankOutlines, rankTexts } from "../../src/code/rank.ts";
import type { CodeChunk } from "../../src/model/code-index.ts";

/** A chunk of twelve lines; what matters to a test is named in it. */
function candidate(
  path: string,
  chunk: Partial<CodeChunk> = {},
  { fused = 0.5, defines = false, cosine }: Partial<RankInput> = {},
): RankInput {
  const index = chunk.index ?? 0;
  return {
    ...{ fused, defines, cosine },
    chunk: {
      ...{ id: `${path}#${index}`, path, index, generation: 1, language: "typescript", contentHash: "", indexedAt: "" },
      ...{ kind: "function", parents: [], defines: [], startLine: 1 + index * 20, endLine: 12 + index * 20, text: "work() {\n}\n" },
      ...chunk,
    },
  };
}

const order = (query: string, candidates: readonly RankInput[], wanted: Parameters<typeof rankOutlines>[2] = new Set()) => {
  const asked = readQuery(query);
  return rankTexts(asked, rankOutlines(asked, candidates, wanted)).map(({ chunk }) => chunk.id);
};

describe("ranking code", () => {
  it("puts the definition of a name first, and first of all in the file that is named after it", () => {
    const all = [
      candidate("src/uses.ts", {}, { fused: 1 }),
      candidate("src/other.ts", {}, { fused: 0.6, defines: true }),
      candidate("src/job-queue.ts", {}, { fused: 0.5, defines: true }),
    ];
    expect(order("JobQueue", all).slice(0, 2)).toEqual(["src/job-queue.ts#0", "src/other.ts#0"]);
    const inside = [candidate("a.cc", { name: "Cache" }, { defines: true }), candidate("b.cc", { name: "Insert" }, { defines: true })];
    expect(order("Insert", inside)[0]).toBe("b.cc#0");
    // In a sentence the name is one hint among others.
    expect(order("where does JobQueue wait", all.slice(0, 2))[0]).toBe("src/uses.ts#0");
  });

  it("lifts names and paths that have the words of the question", () => {
    expect(order("delete obsolete files", [candidate("a.cc"), candidate("b.cc", { name: "DeleteObsoleteFiles" })])[0]).toBe("b.cc#0");
    expect(order("delete obsolete files", [candidate("a.cc"), candidate("b.cc", { defines: ["x", "delete_files"] })])[0]).toBe("b.cc#0");
    expect(order("open connections", [candidate("src/a.ts"), candidate("src/connection-pool.ts")])[0]).toBe("src/connection-pool.ts#0");
  });

  it("finds a pasted message by most of its words, in whatever way the source breaks it up", () => {
    const message = candidate(
      "b.ts",
      { text: 'throw new Error(\n  "Server selection \'timed out\'" +\n " after " + wait + " ms");' },
      { fused: 0.4 },
    );
    expect(order("Server selection timed out after 30000 ms", [candidate("a.ts"), message])[0]).toBe("b.ts#0");
    const chance = candidate("b.ts", { text: "after the server" }, { fused: 0.4 });
    expect(order("Server selection timed out after 30000 ms", [candidate("a.ts"), chance])[0]).toBe("a.ts#0");
  });

  it("prefers what does something to what only says that it is there", () => {
    const declared = candidate("a.cc", { text: "Status Recover(Edit* edit);\n" });
    expect(order("recover", [declared, candidate("b.cc", { text: "Recover(edit) {\n}\n" })])[0]).toBe("b.cc#0");
    expect(order("recover", [candidate("db.h"), candidate("z.cc")])[0]).toBe("z.cc#0");
    expect(order("recover", [candidate("a.ts", { kind: "interface" }), candidate("b.ts")])[0]).toBe("b.ts#0");
    expect(order("recover", [candidate("a.ts", { endLine: 2 }), candidate("b.ts")])[0]).toBe("b.ts#0");
  });

  it("puts tests, copies, generated files and prose down, unless they are asked for", () => {
    const files = ["test/a.ts", "vendor/a.ts", "dist/a.ts", "docs/a.md", "examples/a.ts", "legacy/a.ts", "types/a.d.ts"];
    const own = candidate("src/own.ts", {}, { fused: 0.45 });
    for (const path of files) expect(order("run the work", [candidate(path), own])[0], path).toBe("src/own.ts#0");
    expect(order("tests of the work", [candidate("test/a.ts"), own])[0]).toBe("test/a.ts#0");
    expect(order("documentation of the work", [candidate("docs/a.md"), own])[0]).toBe("docs/a.md#0");
    expect(order("run the work", [candidate("test/a.ts"), own], new Set(["test"]))[0]).toBe("test/a.ts#0");
  });

  it("ranks the main file of a module as any other, and knows it by its folder", () => {
    for (const path of ["queue/index.ts", "queue/mod.rs", "queue/__init__.py"]) {
      expect(order("run the work", [candidate(path, {}, { fused: 0.51 }), candidate("src/own.ts")])[0], path).toBe(`${path}#0`);
      const definitions = [candidate("other/a.rs", {}, { fused: 0.55, defines: true }), candidate(path, {}, { defines: true })];
      expect(order("Queue", definitions)[0], path).toBe(`${path}#0`);
    }
  });

  it("prefers definitions to the text around them, and what stands alone to methods and private names", () => {
    const ranked = (chunk: Partial<CodeChunk>, query = "wait for the lock") => order(query, [candidate("a.ts", chunk), candidate("b.ts")]);
    expect(ranked({ kind: "text" })[0]).toBe("b.ts#0");
    expect(ranked({ kind: "method" })[0]).toBe("b.ts#0");
    expect(ranked({ name: "_run" })[0]).toBe("b.ts#0");
    expect(ranked({ name: "#run" })[0]).toBe("b.ts#0");
    expect(ranked({ name: "run" })[0]).toBe("a.ts#0");
    // A language without a parser has text only.
    expect(ranked({ kind: "text", language: "shell" })[0]).toBe("a.ts#0");
    const method = candidate("a.ts", { kind: "method", name: "_run" }, { defines: true });
    const named = candidate("b.ts", { name: "_run" }, { defines: true });
    expect(order("_run", [method, named])[0]).toBe("a.ts#0");
    // A macro may define a name that no grammar sees.
    expect(ranked({ kind: "text" }, "lock")[0]).toBe("a.ts#0");
  });

  it("does not demote the declaration of a name that is typed alone", () => {
    const trait = candidate("src/layer.rs", { name: "Layer", kind: "interface" }, { defines: true });
    const same = candidate("src/reload.rs", { name: "Layer", kind: "struct" }, { fused: 0.6, defines: true });
    expect(order("Layer", [same, trait])[0]).toBe("src/layer.rs#0");
  });

  it("finds a file whose whole name is in a question, however long the question is", () => {
    const question = "after how many milliseconds does the debounce time of an input end and the last value arrive at the other side";
    const other = candidate("src/last-value.ts", {}, { fused: 0.55 });
    expect(order(question, [candidate("src/milliseconds-later.ts", {}, { fused: 0.55 }), candidate("src/debounceTime.ts")])[0]).toBe(
      "src/debounceTime.ts#0",
    );
    expect(order("where is the debounce", [other, candidate("src/debounce-queue.ts")])[0]).toBe("src/debounce-queue.ts#0");
  });

  it("puts older versions of a folder down, unless the question names them", () => {
    const files = [candidate("api/v1/user.ts", {}, { fused: 0.55 }), candidate("api/v2/user.ts")];
    expect(order("create the work", files)[0]).toBe("api/v2/user.ts#0");
    expect(order("create the work in v1", files)[0]).toBe("api/v1/user.ts#0");
    expect(order("create the work", [files[0]!, candidate("other/v2/user.ts")])[0]).toBe("api/v1/user.ts#0");
  });

  it("prefers a short file to a chunk of a very long one, and texts with more of the question's words", () => {
    const long = candidate("src/everything.ts", { index: 300 }, { fused: 0.55 });
    expect(order("run the work", [long, candidate("src/own.ts")])[0]).toBe("src/own.ts#0");
    const texts = [candidate("a.ts", { text: "socket socket socket {}" }), candidate("b.ts", { text: "close idle socket {}" })];
    expect(order("close an idle socket", texts)[0]).toBe("b.ts#0");
  });

  it("lifts the best place of a file with several, and still shows several files", () => {
    const several = [0, 1, 2].map((index) => candidate("several.ts", { index }, { fused: 0.5 - index / 100 }));
    const ranked = order("work", [candidate("alone.ts", {}, { fused: 0.55 }), ...several]);
    expect(ranked.slice(0, 2)).toEqual(["several.ts#0", "alone.ts#0"]);
  });

  it("prefers a file of which more chunks resemble the question, for its length", () => {
    const chunks = (path: string, indexes: readonly number[], cosine: number) =>
      indexes.map((index) => candidate(path, { index }, { cosine, fused: index === indexes[0] ? 0.5 : 0.1 }));
    const far = candidate("far.ts", {}, { cosine: 0.1, fused: 0 });
    // Both files have two chunks among the candidates; the second file has twenty others.
    expect(order("work", [far, ...chunks("long.ts", [0, 21], 0.6), ...chunks("short.ts", [0, 1], 0.6)])[0]).toBe("short.ts#0");
    expect(order("work", [candidate("a.ts", {}, { cosine: 0.1 }), candidate("b.ts", {}, { cosine: 0.6 })])[0]).toBe("b.ts#0");
    // Without vectors there is nothing to compare.
    expect(order("work", [candidate("b.ts"), candidate("a.ts", { index: 3 })])).toEqual(["b.ts#0", "a.ts#3"]);
  });

  it("prefers code to data, unless the question names such a file", () => {
    const all = [candidate("refs/draft.json", { kind: "text" }, { fused: 0.7 }), candidate("src/resolve.ts")];
    expect(order("find the definition that a reference points to", all)[0]).toBe("src/resolve.ts#0");
    expect(order("what does draft.json require", all)[0]).toBe("refs/draft.json#0");
  });

  it("gives the same order however the candidates come", () => {
    const all = ["b.ts", "a.ts", "c.ts"].map((path) => candidate(path));
    expect(order("work", all)).toEqual(["a.ts#0", "b.ts#0", "c.ts#0"]);
    expect(order("work", all.toReversed())).toEqual(["a.ts#0", "b.ts#0", "c.ts#0"]);
  });
});

describe("the roles of a path", () => {
  it.each([
    ["src/db/impl.cc", []],
    ["db/db_test.cc", ["test"]],
    ["src/deep/__tests__/x.js", ["test"]],
    ["third_party/zlib/inflate.h", ["vendored", "header"]],
    ["src/balance/test.rs", ["test"]],
    ["app/tests.py", ["test"]],
    ["src/latest.ts", []],
    ["db/db_bench.cc", ["example"]],
    ["benches/map.rs", ["example"]],
    ["package.json", ["data"]],
    ["README.md", ["docs"]],
    ["lib/api_pb2.py", ["generated"]],
  ])("%s", (path, roles) => {
    expect([...pathRoles(path)]).toEqual(roles);
  });
});

describe("pasted text", () => {
  it("is the longest part of the query that a text has word for word, in any punctuation", () => {
    const words = ["cannot", "read", "property", "of", "undefined"];
    const share = (text: string) => pastedShares(words, [text])[0];
    expect(share("throw error(`cannot read property %s of undefined`)")).toBe(3 / 5);
    expect(share("cannot\n  read: property-of (undefined)")).toBe(1);
    expect(share("we cannot readproperty of undefined")).toBe(0);
    expect(share("cannot read properties of undefined")).toBe(0);
  });

  it("is the same as in a text whose punctuation is replaced by spaces", () => {
    const word = fc.constantFrom("a", "ab", "b", "ba", "é", "𝒳", "1_");
    const text = fc.array(fc.tuple(word, fc.constantFrom("", " ", ".", "  -\n", "𝒳"))).map((parts) => parts.flat().join(""));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), text, (words, lower) => {
        const normalised = ` ${lower.replace(/[^\p{L}\p{N}_]+/gu, " ")} `;
        const runs = words.flatMap((_, from) => words.slice(from).map((__, index) => words.slice(from, from + index + 1)));
        const longest = Math.max(0, ...runs.filter((run) => normalised.includes(` ${run.join(" ")} `)).map(({ length }) => length));
        expect(pastedShares(words, [lower])).toEqual([longest < 3 ? 0 : longest / words.length]);
      }),
    );
  });
});
