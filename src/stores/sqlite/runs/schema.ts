import type { DatabaseSchema } from "../../../model/schema.ts";

/** The schema of the runs database. */
export const runSchema: DatabaseSchema = {
  version: 1,
  name: "runs",
  sql: `
    -- One row per run, its lease included. A deleted run leaves its row, so that its sequence and its token are never used again.
    CREATE TABLE runs (
      run_id TEXT PRIMARY KEY,
      deleted INTEGER NOT NULL DEFAULT 0,
      graph TEXT NOT NULL DEFAULT '',
      fingerprint TEXT NOT NULL DEFAULT '',
      project TEXT,
      status TEXT NOT NULL DEFAULT 'running',
      note TEXT,
      parent_run_id TEXT,
      parent_sequence INTEGER,
      last_sequence INTEGER NOT NULL DEFAULT 0,
      fence INTEGER NOT NULL DEFAULT 0,
      lease_owner TEXT,
      lease_until TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX runs_unfinished ON runs (status, lease_until) WHERE status = 'running' AND deleted = 0;
    -- Every save of every run: the newest row of a node is its checkpoint, the older ones are its history.
    -- Columns that are read together are stored together: a load reads two values instead of fifteen, and a save binds seven.
    -- The columns next to the envelope are the ones that statements search by. The state comes last, so that reading the other
    -- columns of a large row does not touch its pages. Text states are stored as text, others as bytes.
    CREATE TABLE checkpoints (
      run_id TEXT NOT NULL,
      node_id TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      timestamp TEXT NOT NULL,
      branch TEXT NOT NULL,
      envelope TEXT NOT NULL,
      data BLOB NOT NULL,
      PRIMARY KEY (run_id, sequence)
    );
    CREATE INDEX checkpoints_node ON checkpoints (run_id, node_id, sequence);
  `,
};

/** Deletes everything of a run but its counters, and fences off its lease holder. */
export const MARK_DELETED = `UPDATE runs SET deleted = 1, fence = fence + 1, lease_owner = NULL, lease_until = NULL, graph = '', fingerprint = '',
  project = NULL, note = NULL WHERE run_id = ? AND deleted = 0`;
