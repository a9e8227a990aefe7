import { expect, it } from "vitest";
import { Language, Parser } from "web-tree-sitter";
import { GRAMMARS, type GrammarName, isGrammarName } from "../../src/code/chunking/grammars/index.ts";
import { languageOf } from "../../src/code/chunking/language.ts";
import { linesOf } from "../../src/code/chunking/lines.ts";
import { readOutline } from "../../src/code/chunking/read-outline.ts";
import { type CursorFunctions, DirectCursor } from "../../src/code/direct-cursor.ts";
import { readGrammar } from "../../src/code/tree-sitter.ts";
import { FIXTURES } from "./fixtures.ts";

/** Node has it; its types do not say so. */
declare const WebAssembly: { Memory: new (limits: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer } };

it("reads the same outline as the cursor of web-tree-sitter, in every language, and leaves that cursor at the same node", async () => {
  const wasmMemory = new WebAssembly.Memory({ initial: 512, maximum: 4096 });
  const runtime = { wasmMemory, printErr: () => {} };
  await Parser.init(runtime);
  const parser = new Parser();
  for (const { path, content } of FIXTURES) {
    const language = languageOf(path, content);
    if (!isGrammarName(language)) continue;
    const grammar = await Language.load(await readGrammar(language satisfies GrammarName));
    parser.setLanguage(grammar);
    const tree = parser.parse(content)!;
    const lines = linesOf(content);
    const plain = tree.walk();
    const wrapped = tree.walk();
    const direct = new DirectCursor(wrapped, runtime as unknown as CursorFunctions, wasmMemory);
    const outline = readOutline(direct, grammar, GRAMMARS[language], lines);
    direct.gotoFirstChild();
    direct.release(); // before another cursor uses the buffer
    expect(outline, path).toEqual(readOutline(plain, grammar, GRAMMARS[language], lines));
    plain.gotoFirstChild();
    expect([wrapped.nodeType, wrapped.startIndex], path).toEqual([plain.nodeType, plain.startIndex]);
    for (const cursor of [plain, wrapped]) cursor.delete();
    tree.delete();
  }
});
