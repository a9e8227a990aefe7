/**
 * Searches read `current_chunks`: the chunks of each file's current generation. A commit inserts the next generation, makes it current
 * and deletes the previous one, all in one transaction. Generations come from one counter per project, so that a chunk's id is never
 * reused, not even for a file that was removed and added again.
 *
 * `chunk_generations` repeats the generation of `indexed_files` with the number of its chunks. The table is part of the specified
 * schema. It answers counts without a scan of the chunks, and orphan checks compare the chunks with it.
 */
export const CODE_SCHEMA = `
CREATE TABLE code_generation (id integer PRIMARY KEY CHECK (id = 1), last bigint NOT NULL);
INSERT INTO code_generation (id, last) VALUES (1, 0);
CREATE TABLE indexed_files (
  file_key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id text NOT NULL,
  file_path text COLLATE "C" NOT NULL,
  content_hash text NOT NULL CHECK (length(content_hash) = 64),
  generation bigint NOT NULL,
  indexed_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
  language text NOT NULL,
  bytes bigint NOT NULL,
  lines integer NOT NULL,
  notice text,
  UNIQUE (project_id, file_path)
);
CREATE INDEX indexed_files_hash ON indexed_files (content_hash);
CREATE TABLE chunk_generations (
  project_id text NOT NULL,
  file_path text COLLATE "C" NOT NULL,
  current_generation bigint NOT NULL,
  chunks_count integer NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (project_id, file_path)
);
CREATE TABLE file_moves (
  move_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id text NOT NULL,
  old_path text NOT NULL,
  new_path text NOT NULL,
  detected_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE code_texts (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE code_chunks (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  file_key bigint NOT NULL,
  generation bigint NOT NULL,
  chunk_index integer NOT NULL,
  kind text NOT NULL,
  name text,
  parents text NOT NULL,
  defines text NOT NULL,
  start_line integer NOT NULL,
  end_line integer NOT NULL,
  text_key bigint NOT NULL,
  text_start integer NOT NULL,
  text_length integer NOT NULL,
  terms tsvector NOT NULL,
  term_count integer NOT NULL GENERATED ALWAYS AS (count_terms(terms)) STORED,
  UNIQUE (file_key, generation, chunk_index)
);
CREATE INDEX code_chunks_terms ON code_chunks USING gin (terms);
-- The outer join costs nothing in a query that does not select the text: PostgreSQL omits it.
CREATE VIEW current_chunks AS
  SELECT c.*, 1 AS revision, f.file_path, f.language, f.content_hash, f.indexed_at, t.body
    FROM code_chunks c JOIN indexed_files f ON f.file_key = c.file_key AND f.generation = c.generation
    LEFT JOIN code_texts t ON t.key = c.text_key;
CREATE TABLE code_symbols (
  name text COLLATE "C" NOT NULL,
  file_key bigint NOT NULL,
  defined integer NOT NULL,
  used integer NOT NULL,
  positions bytea NOT NULL,
  PRIMARY KEY (name, file_key)
);
CREATE INDEX code_symbols_file ON code_symbols (file_key);
CREATE TABLE code_outlines (file_key bigint PRIMARY KEY, body bytea NOT NULL);
-- Reports of the jobs that index the project. The body is the report as JSON.
CREATE TABLE index_reports (
  job_id text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  status text NOT NULL,
  cancel_requested boolean NOT NULL DEFAULT false,
  body text NOT NULL
);
-- A rename changes a chunk's id, so the outbox records it.
CREATE FUNCTION code_chunks_to_outbox() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $body$
BEGIN
  IF EXISTS (SELECT 1 FROM vector_index WHERE collection = 'code') THEN
    INSERT INTO vector_outbox (collection, version_id, key)
    SELECT v.collection, v.version_id, v.key FROM vectors v WHERE v.collection = 'code' AND v.key = NEW.key
    ON CONFLICT (collection, version_id, key) DO UPDATE SET change = DEFAULT;
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER code_chunks_outbox AFTER UPDATE OF id ON code_chunks FOR EACH ROW EXECUTE FUNCTION code_chunks_to_outbox();
`;
