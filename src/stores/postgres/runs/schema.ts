import type { DatabaseSchema } from "../../../model/schema.ts";

/** The schema that holds runs. It is named in every statement, so that a statement can go alone. */
export const RUNS_SCHEMA = "runs";

export const runSchema: DatabaseSchema = {
  version: 1,
  name: "runs",
  sql: `
    -- One row per run, its lease included. A deleted run leaves its row, so that its sequence and its token are never used again.
    -- The row changes with every save: room on the page lets that happen in place.
    CREATE TABLE runs (
      run_id text COLLATE "C" PRIMARY KEY,
      deleted boolean NOT NULL DEFAULT false,
      graph text NOT NULL DEFAULT '',
      fingerprint text NOT NULL DEFAULT '',
      project text,
      status text NOT NULL DEFAULT 'running',
      note text,
      parent_run_id text,
      parent_sequence bigint,
      last_sequence bigint NOT NULL DEFAULT 0,
      fence bigint NOT NULL DEFAULT 0,
      lease_owner text,
      lease_until timestamptz,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    -- Every save of every run: the newest row of a node is its checkpoint, the older ones are its history.
    CREATE TABLE checkpoints (
      run_id text COLLATE "C" NOT NULL,
      node_id text COLLATE "C" NOT NULL,
      sequence bigint NOT NULL,
      timestamp timestamptz NOT NULL,
      version integer NOT NULL,
      next_node text,
      previous_node text,
      attempt integer NOT NULL,
      branch text NOT NULL,
      step integer NOT NULL,
      kind text NOT NULL,
      note text,
      size bigint NOT NULL,
      encoding text NOT NULL,
      data bytea NOT NULL,
      PRIMARY KEY (run_id, sequence)
    );
    CREATE INDEX checkpoints_node ON checkpoints (run_id, node_id, sequence);
    -- Large states arrive compressed.
    ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;
  `,
};
