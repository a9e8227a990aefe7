import type { DatabaseSync } from "node:sqlite";
import type { Checkpoint } from "../../src/model/checkpoint.ts";
import type { Knowledge } from "../../src/model/knowledge.ts";
import { checkpointChecksum, knowledgeChecksum } from "../../src/model/stored-record.ts";

/** Writes the correct checksum to every record of a SQLite file after a test changed rows.  */
export function reseal(db: DatabaseSync): void {
  const tagsOf = db.prepare("SELECT tag FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position");
  for (const row of db.prepare("SELECT * FROM checkpoints").all() as unknown as CheckpointRow[]) {
    const { key, created_at, updated_at, token_count, context, anchors, superseded_by, ...columns } = row;
    const record: Checkpoint = {
      ...columns,
      tags: (tagsOf.all(key) as { tag: string }[]).map(({ tag }) => tag),
      context: JSON.parse(context),
      anchors: JSON.parse(anchors),
      supersededBy: superseded_by,
      tokenCount: token_count,
      createdAt: created_at,
      updatedAt: updated_at,
      // Not part of the checksum.
      projectPath: "",
      createdOrder: "",
      updatedOrder: "",
    };
    db.prepare("UPDATE checkpoints SET checksum = ? WHERE key = ?").run(checkpointChecksum(record), key);
  }
  for (const row of db.prepare("SELECT * FROM knowledge").all() as unknown as KnowledgeRow[]) {
    const { key, created_at, updated_at, content_hash, anchors, superseded_by, ...columns } = row;
    const kept = { anchors: JSON.parse(anchors), supersededBy: superseded_by };
    const record: Knowledge = {
      ...columns,
      ...kept,
      contentHash: content_hash,
      createdAt: created_at,
      updatedAt: updated_at,
      createdOrder: "",
    };
    db.prepare("UPDATE knowledge SET checksum = ? WHERE key = ?").run(knowledgeChecksum(record), key);
  }
}

interface Times {
  readonly key: number;
  readonly anchors: string;
  readonly superseded_by: string;
  readonly created_at: string;
  readonly updated_at: string;
}
type CheckpointRow = Times &
  Pick<Checkpoint, "id" | "summary" | "description" | "revision"> & { readonly context: string; readonly token_count: number };
type KnowledgeRow = Times &
  Omit<Knowledge, "createdAt" | "updatedAt" | "createdOrder" | "contentHash" | "anchors" | "supersededBy"> & {
    readonly content_hash: string;
  };
