import type { DatabaseSchema } from "../../../model/schema.ts";
import { EVENTS_TABLE } from "../driver/event-log.ts";

/** The schema that holds runs. It is named in every statement, so that a statement can go alone. */
export const RUNS_SCHEMA = "runs";

export const runSchema: DatabaseSchema = {
  version: 4,
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
      ready_at timestamptz,
      claims integer NOT NULL DEFAULT 0,
      claimed_sequence bigint NOT NULL DEFAULT 0,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    -- No save and no renewal changes an indexed column, so that rows still change in place.
    CREATE INDEX runs_ready ON runs (graph, fingerprint, ready_at) WHERE status IN ('queued', 'answered') AND NOT deleted;
    CREATE INDEX runs_running ON runs (graph, fingerprint) WHERE status = 'running' AND NOT deleted;
    -- The shape of each version of a graph as JSON, so that any process can draw its runs.
    CREATE TABLE graphs (
      graph text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      shape text NOT NULL,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (graph, fingerprint)
    );
    -- The workers that listen for runs: one row per graph. A worker repeats its announcement before it expires.
    CREATE TABLE workers (
      worker_id text COLLATE "C" NOT NULL,
      graph text COLLATE "C" NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      owner text NOT NULL,
      command text,
      folder text,
      started_at timestamptz NOT NULL,
      until timestamptz NOT NULL,
      PRIMARY KEY (worker_id, graph, fingerprint)
    );
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
    ${EVENTS_TABLE}
    CREATE FUNCTION run_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    DECLARE
      action text := 'step';
      project text := NEW.project;
    BEGIN
      IF TG_OP = 'UPDATE' THEN
        project := coalesce(NEW.project, OLD.project);
        action := CASE WHEN NEW.deleted THEN 'deleted' WHEN NEW.last_sequence <> OLD.last_sequence THEN 'step' ELSE 'status' END;
      END IF;
      INSERT INTO events (kind, action, id, project, status, run_sequence) VALUES ('run', action, NEW.run_id, project, NEW.status, NEW.last_sequence);
      RETURN NULL;
    END $$;
    CREATE TRIGGER runs_started AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION run_changed();
    CREATE TRIGGER runs_changed AFTER UPDATE OF last_sequence, status, deleted ON runs FOR EACH ROW
      WHEN (NEW.last_sequence <> OLD.last_sequence OR NEW.status <> OLD.status OR NEW.deleted <> OLD.deleted) EXECUTE FUNCTION run_changed();
  `,
};
