import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Language, Parser } from "web-tree-sitter";
import { grammarFile } from "../../src/code/tree-sitter.ts";
import type { Grammar } from "../../src/text/code/grammar.ts";
import { GRAMMARS, type GrammarName } from "../../src/text/code/grammars/index.ts";

const folder = resolve(import.meta.dirname, "../../grammars");

describe("the grammars", () => {
  beforeAll(() => Parser.init());

  it("are the files their README names", () => {
    const readme = readFileSync(join(folder, "README.md"), "utf8");
    const files = readdirSync(folder).filter((file) => file.endsWith(".wasm"));
    expect(files.length).toBe(5);
    for (const file of files) {
      const sha256 = createHash("sha256")
        .update(readFileSync(join(folder, file)))
        .digest("hex");
      expect(readme.split("\n").find((line) => line.includes(`| ${file} `))).toContain(sha256);
    }
  });

  it.each(Object.entries<Grammar>(GRAMMARS))("of %s has every node type that our rules name", async (language, grammar) => {
    const { types } = await Language.load(readFileSync(grammarFile(language as GrammarName)));
    const { definitions, identifiers, leads, wrappers = [], open = [] } = grammar;
    const named = [...Object.keys(definitions), ...identifiers, ...leads, ...wrappers, ...open];
    expect(named.filter((type) => !types.includes(type))).toEqual([]);
  });
});
