import type { DatabaseSync } from "node:sqlite";
import { checkpointChecksum, knowledgeChecksum } from "../../src/model/stored-record.ts";

/** Writes the right checksum to every record of a SQLite file, after a test changed rows by hand. */
export function reseal(db: DatabaseSync): void {
  const tagsOf = db.prepare("SELECT tag FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position");
  for (const row of db.prepare("SELECT * FROM checkpoints").all() as Record<string, never>[]) {
    const tags = (tagsOf.all(row.key!) as { tag: string }[]).map(({ tag }) => tag);
    const times = { createdAt: row.created_at!, updatedAt: row.updated_at! };
    const rest = { context: JSON.parse(row.context!), tokenCount: row.token_count!, projectPath: "", createdOrder: "", updatedOrder: "" };
    const record = { id: row.id!, summary: row.summary!, description: row.description!, revision: row.revision!, tags, ...times, ...rest };
    db.prepare("UPDATE checkpoints SET checksum = ? WHERE key = ?").run(checkpointChecksum(record), row.key!);
  }
  for (const row of db.prepare("SELECT * FROM knowledge").all() as Record<string, never>[]) {
    const times = { createdAt: row.created_at!, updatedAt: row.updated_at!, createdOrder: "", contentHash: row.content_hash! };
    db.prepare("UPDATE knowledge SET checksum = ? WHERE key = ?").run(
      knowledgeChecksum({ ...(row as never as object), ...times } as never),
      row.key!,
    );
  }
}
