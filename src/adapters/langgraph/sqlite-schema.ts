import type { DatabaseSchema } from "../../model/schema.ts";

export const threadSchema: DatabaseSchema = {
  version: 1,
  name: "threads",
  sql: `
    CREATE TABLE checkpoints (
      thread_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      checkpoint_id TEXT NOT NULL,
      parent_id TEXT,
      created_at TEXT NOT NULL,
      -- Kept only because newer checkpoints need its values or writes: retention has taken it out of sight.
      hidden INTEGER NOT NULL DEFAULT 0,
      channels TEXT NOT NULL,
      homes TEXT NOT NULL,
      deltas TEXT NOT NULL,
      metadata_type TEXT NOT NULL,
      metadata BLOB NOT NULL,
      type TEXT NOT NULL,
      checkpoint BLOB NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
    ) WITHOUT ROWID;
    CREATE TABLE writes (
      thread_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      checkpoint_id TEXT NOT NULL,
      task_id TEXT NOT NULL,
      idx INTEGER NOT NULL,
      channel TEXT NOT NULL,
      type TEXT NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    ) WITHOUT ROWID;
  `,
};
