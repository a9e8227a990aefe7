import type { DatabaseSchema } from "../../../model/schema.ts";
import { EVENTS_TABLE } from "../driver/event-log.ts";

/** The schema of the runs database. */
export const runSchema: DatabaseSchema = {
  version: 3,
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
      ready_at TEXT,
      claims INTEGER NOT NULL DEFAULT 0,
      claimed_sequence INTEGER NOT NULL DEFAULT 0,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX runs_unfinished ON runs (status, lease_until) WHERE status = 'running' AND deleted = 0;
    CREATE INDEX runs_ready ON runs (graph, fingerprint, ready_at) WHERE status IN ('queued', 'answered') AND deleted = 0;
    -- The shape of each version of a graph as JSON, so that any process can draw its runs.
    CREATE TABLE graphs (
      graph TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      shape TEXT NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (graph, fingerprint)
    ) WITHOUT ROWID;
    -- The workers that listen for runs: one row per graph. A worker repeats its announcement before it expires.
    CREATE TABLE workers (
      worker_id TEXT NOT NULL,
      graph TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      owner TEXT NOT NULL,
      command TEXT,
      folder TEXT,
      started_at TEXT NOT NULL,
      until TEXT NOT NULL,
      PRIMARY KEY (worker_id, graph, fingerprint)
    ) WITHOUT ROWID;
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
    ${EVENTS_TABLE}
    CREATE TRIGGER runs_started AFTER INSERT ON runs
    BEGIN
      INSERT INTO events (kind, action, id, project, status, run_sequence)
        VALUES ('run', 'step', NEW.run_id, NEW.project, NEW.status, NEW.last_sequence);
    END;
    CREATE TRIGGER runs_changed AFTER UPDATE OF last_sequence, status, deleted ON runs
      WHEN NEW.last_sequence <> OLD.last_sequence OR NEW.status <> OLD.status OR NEW.deleted <> OLD.deleted
    BEGIN
      INSERT INTO events (kind, action, id, project, status, run_sequence)
        VALUES ('run', CASE WHEN NEW.deleted THEN 'deleted' WHEN NEW.last_sequence <> OLD.last_sequence THEN 'step' ELSE 'status' END,
          NEW.run_id, coalesce(NEW.project, OLD.project), NEW.status, NEW.last_sequence);
    END;
  `,
};

/** Deletes everything of a run but its counters, and fences off its lease holder. */
export const MARK_DELETED = `UPDATE runs SET deleted = 1, fence = fence + 1, lease_owner = NULL, lease_until = NULL, graph = '', fingerprint = '',
  project = NULL, note = NULL, ready_at = NULL, claims = 0, claimed_sequence = 0 WHERE run_id = ? AND deleted = 0`;
