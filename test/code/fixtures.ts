import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type ChunkFileInput, chunkFile } from "../../src/code/chunking/chunk-file.ts";
import { GRAMMARS } from "../../src/code/chunking/grammars/index.ts";
import { treeSitter } from "../../src/code/tree-sitter.ts";
import type { ChunkedFile } from "../../src/model/code-chunk.ts";

const folder = resolve(import.meta.dirname, "../fixtures/code");

/** One file per language. Their names end in `.txt`, so that no tool of this project takes them for its own source. */
export const FIXTURES: readonly { readonly path: string; readonly content: string }[] = readdirSync(folder)
  .filter((file) => file.endsWith(".txt") && !file.endsWith(".expected.txt"))
  .map((file) => ({ path: file.slice(0, -".txt".length), content: readFileSync(join(folder, file), "utf8") }));

export function fixture(path: string): { readonly path: string; readonly content: string } {
  const found = FIXTURES.find((file) => file.path === path);
  if (!found) throw new Error(`There is no fixture ${path}.`);
  return found;
}

export function expectationFile(path: string): string {
  return join(folder, `${path}.expected.txt`);
}

/** `chunkFile` with every grammar loaded, on this thread. */
export async function chunker(): Promise<(input: ChunkFileInput) => ChunkedFile> {
  const parser = await treeSitter({ memoryBytes: 512 * 1024 * 1024 });
  for (const language of Object.keys(GRAMMARS)) await parser.load(language);
  return (input) => chunkFile(input, parser.readOutline);
}
