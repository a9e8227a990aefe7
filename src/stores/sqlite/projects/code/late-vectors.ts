import type { ChunkVectors, UnembeddedChunks } from "../../../../model/unembedded-chunks.ts";
import { type NameColumns, namesOf, type TextColumns } from "../../../rows/chunk-row.ts";
import type { SqliteTx } from "../../driver/driver.ts";
import { findCollection } from "../../vectors/collection.ts";
import { putVectorsByVersion } from "../embeddings.ts";
import { IN_LIST } from "./filter.ts";

type Row = NameColumns & TextColumns & { readonly key: number; readonly path: string };

/** Reads chunks without a vector by key, which is the order in which they were written: neighbours share a compressed text. */
export function readUnembedded(tx: SqliteTx, versionId: number, limit: number, afterKey: number): UnembeddedChunks {
  const rows = tx.all<Row>(
    `SELECT c.key, f.file_path AS path, c.kind, c.name, c.parents, c.defines, c.text_key, c.text_start, c.text_length
       FROM code_chunks c JOIN indexed_files f ON f.file_key = c.file_key AND f.generation = c.generation
      WHERE c.key > ? AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.collection_id = ? AND v.key = c.key) ORDER BY c.key LIMIT ?`,
    afterKey,
    findCollection(tx, "code", versionId)?.id ?? -1,
    limit,
  );
  const blocks: Uint8Array[] = [];
  const places = new Map<number, number>();
  const chunks = rows.flatMap(({ key, path, text_key, text_start: start, text_length: length, ...names }) => {
    let block = places.get(text_key);
    if (block === undefined) {
      const text = tx.get<{ body: Uint8Array }>("SELECT body FROM code_texts WHERE key = ?", text_key);
      if (!text) return []; // damaged: the next index run removes the file
      block = blocks.push(text.body) - 1;
      places.set(text_key, block);
    }
    return [{ key, path, block, start, length, ...namesOf(names) }];
  });
  return { chunks, blocks };
}

/** Stores vectors of chunks that exist. A key is never reused and its text never changes, so the vector is that of the chunk. */
export function putLateVectors(tx: SqliteTx, { versionId, dimension, keys, values }: ChunkVectors): number {
  const stored = tx.all<{ key: number }>(`SELECT key FROM code_chunks WHERE key ${IN_LIST}`, JSON.stringify(keys));
  const existing = new Set(stored.map(({ key }) => key));
  const entries = keys.flatMap((key, place) =>
    existing.has(key) ? [{ key, vector: values.subarray(place * dimension, (place + 1) * dimension) }] : [],
  );
  putVectorsByVersion(tx, "code", new Map([[versionId, entries]]));
  return entries.length;
}
