import type { CodeKind } from "../../model/code-chunk.ts";

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
    parents: JSON.parse(parents) as string[],
    defines: JSON.parse(defines) as string[],
  };
}
