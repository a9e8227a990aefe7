import type { DatabaseSchema } from "../../model/schema.ts";

/** The schema that holds threads. */
export const THREADS_SCHEMA = "langgraph";

export const threadSchema: DatabaseSchema = {
  version: 1,
  name: "threads",
  sql: `
    CREATE TABLE checkpoints (
      thread_id text COLLATE "C" NOT NULL,
      checkpoint_ns text COLLATE "C" NOT NULL,
      checkpoint_id text COLLATE "C" NOT NULL,
      parent_id text COLLATE "C",
      created_at timestamptz NOT NULL DEFAULT now(),
      -- Kept only because newer checkpoints need its values or writes: retention has taken it out of sight.
      hidden boolean NOT NULL DEFAULT false,
      channels text[] NOT NULL,
      homes jsonb NOT NULL,
      deltas text[] NOT NULL,
      metadata_type text NOT NULL,
      metadata bytea NOT NULL,
      type text NOT NULL,
      checkpoint bytea NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
    );
    CREATE TABLE writes (
      thread_id text COLLATE "C" NOT NULL,
      checkpoint_ns text COLLATE "C" NOT NULL,
      checkpoint_id text COLLATE "C" NOT NULL,
      task_id text COLLATE "C" NOT NULL,
      idx integer NOT NULL,
      channel text NOT NULL,
      type text NOT NULL,
      value bytea NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
    );
  `,
};
