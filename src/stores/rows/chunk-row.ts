import type { CodeKind } from "../../model/code-chunk.ts";
import type { CodeOutline } from "../../model/code-index.ts";
import { unpack } from "../../text/index-text.ts";

/** Where the text of a chunk is: a range of a compressed block. */
export interface TextColumns {
  readonly text_key: number;
  readonly text_start: number;
  readonly text_length: number;
}

/** The columns of a chunk that name it. Lists are JSON. */
export interface NameColumns {
  kind: CodeKind;
  name: string | null;
  parents: string;
  defines: string;
}

/** A row of `current_chunks`. */
export interface ChunkRow extends NameColumns, TextColumns {
  id: string;
  generation: number;
  chunk_index: number;
  start_line: number;
  end_line: number;
  file_path: string;
  language: string;
  content_hash: string;
  indexed_at: string;
}

export function namesOf({ kind, name, parents, defines }: NameColumns) {
  return {
    kind,
    ...(name !== null && { name }),
    parents: listOf(parents),
    defines: listOf(defines),
  };
}

/** Most lists are empty, and a search reads hundreds of them. */
function listOf(json: string): string[] {
  return json === "[]" ? [] : (JSON.parse(json) as string[]);
}

/** Returns the outline of a row: the chunk without its text. */
export function outlineOf(row: ChunkRow): CodeOutline {
  return {
    id: row.id,
    path: row.file_path,
    index: row.chunk_index,
    generation: row.generation,
    language: row.language,
    contentHash: row.content_hash,
    indexedAt: row.indexed_at,
    startLine: row.start_line,
    endLine: row.end_line,
    ...namesOf(row),
  };
}

/** Unpacked blocks by their keys. */
export interface Blocks {
  get(key: number): string | undefined;
  set(key: number, block: string): void;
}

/** Returns a function that reads texts; a block that several chunks share is unpacked once. */
export function textReader(
  bodyOf: (textKey: number) => Uint8Array | undefined,
  blocks: Blocks = new Map(),
): (place: TextColumns) => string {
  return ({ text_key, text_start, text_length }) => {
    let block = blocks.get(text_key);
    if (block === undefined) {
      block = unpack(bodyOf(text_key) ?? new Uint8Array());
      blocks.set(text_key, block);
    }
    return block.slice(text_start, text_start + text_length);
  };
}

/** Characters of unpacked blocks that are cached: the texts of about six searches. */
const RECENT_CHARS = 12_000_000;

/** Returns a cache of the blocks that were read last. It holds one block at least, however long. */
export function recentBlocks(limitChars = RECENT_CHARS): Blocks {
  const blocks = new Map<number, string>(); // in order of last use
  let chars = 0;
  return {
    get(key) {
      const block = blocks.get(key);
      if (block === undefined) return undefined;
      blocks.delete(key);
      blocks.set(key, block);
      return block;
    },
    set(key, block) {
      blocks.set(key, block);
      chars += block.length;
      for (const [oldest, { length }] of blocks) {
        if (chars <= limitChars || oldest === key) break;
        blocks.delete(oldest);
        chars -= length;
      }
    },
  };
}
