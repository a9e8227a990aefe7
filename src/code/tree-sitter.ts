import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliDecompress } from "node:zlib";
import { Language, Parser } from "web-tree-sitter";
import { builtFile } from "../files/built-file.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import type { ReadOutline } from "./chunking/chunk-file.ts";
import { GRAMMARS, type GrammarName, isGrammarName } from "./chunking/grammars/index.ts";
import { readOutline } from "./chunking/read-outline.ts";
import { type CursorFunctions, DirectCursor } from "./direct-cursor.ts";

export interface TreeSitter {
  /** Makes `readOutline` know this language. Does nothing for one without a grammar. */
  load(language: string): Promise<void>;
  /** Parses and reads in one step. Throws when the parser fails; it cannot be used after that. */
  readonly readOutline: ReadOutline;
}

/**
 * The parser with its grammars, compiled to WebAssembly: a fault in it is an exception here, not the end of the process.
 * It may use `memoryBytes` at most, however odd the file.
 */
export async function treeSitter({ memoryBytes }: { readonly memoryBytes: number }): Promise<TreeSitter> {
  const wasmMemory = new WebAssembly.Memory({
    initial: INITIAL_PAGES,
    maximum: Math.max(INITIAL_PAGES, Math.floor(memoryBytes / PAGE_BYTES)),
  });
  // The runtime reports an abort on the console as well as by an exception; the exception is enough.
  const runtime = { wasmMemory, printErr: () => {} };
  await Parser.init(runtime);
  const parser = new Parser();
  const languages = new Map<GrammarName, Language>();

  return {
    async load(language) {
      if (isGrammarName(language) && !languages.has(language)) languages.set(language, await Language.load(await readGrammar(language)));
    },
    readOutline(language, lines) {
      const loaded = isGrammarName(language) && languages.get(language);
      if (!loaded) return undefined;
      parser.setLanguage(loaded);
      const tree = parser.parse(lines.content, null, { progressCallback: () => yieldToCalls() });
      if (!tree) throw new Error("The parser gave no tree.");
      const cursor = tree.walk();
      const direct = new DirectCursor(cursor, runtime as unknown as CursorFunctions, wasmMemory);
      try {
        return readOutline(direct, loaded, GRAMMARS[language], lines, yieldToCalls);
      } finally {
        direct.release();
        cursor.delete();
        tree.delete();
      }
    },
  };
}

/** Node has it; its types do not say so. */
declare const WebAssembly: { Memory: new (limits: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer } };

const PAGE_BYTES = 65_536;
/** What the runtime itself starts with. */
const INITIAL_PAGES = 512;

/** Reads and decompresses the grammar of a language. */
export async function readGrammar(language: GrammarName): Promise<Uint8Array> {
  return decompress(await readFile(builtFile(`grammars/${SHARED_GRAMMARS[language] ?? language}.wasm.br`)));
}

const decompress = promisify(brotliDecompress);

/** Languages whose grammar has another name. */
const SHARED_GRAMMARS: Partial<Record<GrammarName, string>> = { csharp: "c-sharp", vue: "html", svelte: "html" };
