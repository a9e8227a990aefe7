import type { DatabaseSchema } from "../../../../model/schema.ts";
import { VECTOR_SCHEMA } from "../../vectors/schema.ts";
import { EMBEDDING_VERSIONS_SCHEMA, PROJECT_INFO_SCHEMA } from "../embedding-schema.ts";
import { OUTBOX_SCHEMA } from "../outbox.ts";

/**
 * The tables of the code index. Searches read `current_chunks`: the chunks of each file's current generation. A commit inserts the next
 * generation, makes it current and deletes the previous one, all in one transaction. Generations come from one counter per project, so
 * that a chunk's id is not reused while the index file exists, not even for a file that was removed and added again.
 *
 * `chunk_generations` repeats the generation of `indexed_files` with the number of its chunks. The table is part of the specified
 * schema. It answers counts without a scan of the chunks, and orphan checks compare the chunks with it.
 *
 * Texts are compressed, several chunks together. A symbol has one row per file and name. The outline holds the definitions and lists
 * the names of its file, so that no second index by file is needed.
 */
const CODE_TABLES = `
CREATE TABLE code_generation (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL);
INSERT INTO code_generation (id, last) VALUES (1, 0);
CREATE TABLE indexed_files (
  file_key INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  file_path TEXT NOT NULL,
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  generation INTEGER NOT NULL,
  indexed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  language TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  lines INTEGER NOT NULL,
  notice TEXT,
  UNIQUE (project_id, file_path)
);
CREATE INDEX indexed_files_hash ON indexed_files (content_hash);
CREATE TABLE chunk_generations (
  project_id TEXT NOT NULL,
  file_path TEXT NOT NULL,
  current_generation INTEGER NOT NULL,
  chunks_count INTEGER NOT NULL,
  updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (project_id, file_path)
);
-- The renames of files.
CREATE TABLE file_moves (
  move_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  old_path TEXT NOT NULL,
  new_path TEXT NOT NULL,
  detected_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE code_texts (key INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE code_chunks (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  file_key INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  chunk_index INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT,
  parents TEXT NOT NULL,
  defines TEXT NOT NULL,
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  text_key INTEGER NOT NULL,
  text_start INTEGER NOT NULL,
  text_length INTEGER NOT NULL,
  UNIQUE (file_key, generation, chunk_index)
);
-- The outer join costs nothing in a query that does not select the text: SQLite omits it.
CREATE VIEW current_chunks AS
  SELECT c.*, 1 AS revision, f.file_path, f.language, f.content_hash, f.indexed_at, t.body
    FROM code_chunks c JOIN indexed_files f ON f.file_key = c.file_key AND f.generation = c.generation
    LEFT JOIN code_texts t ON t.key = c.text_key;
CREATE VIRTUAL TABLE code_fts USING fts5 (
  terms, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co' tokenchars '_$'"
);
CREATE TABLE code_symbols (
  name TEXT NOT NULL,
  file_key INTEGER NOT NULL,
  defined INTEGER NOT NULL,
  used INTEGER NOT NULL,
  positions BLOB NOT NULL,
  PRIMARY KEY (name, file_key)
) WITHOUT ROWID;
CREATE TABLE code_outlines (file_key INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- Reports of the jobs that index the project. The body is the report as JSON.
CREATE TABLE index_reports (
  job_id TEXT PRIMARY KEY,
  started_at TIMESTAMP NOT NULL,
  updated_at TIMESTAMP NOT NULL,
  status TEXT NOT NULL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL
);
-- A rename changes a chunk's id, so the outbox records it.
CREATE TRIGGER code_chunks_outbox AFTER UPDATE OF id ON code_chunks
BEGIN
  INSERT OR REPLACE INTO vector_outbox (collection, version_id, key)
  SELECT s.collection, s.version_id, NEW.key FROM vector_index JOIN vector_collections s USING (collection)
    JOIN vectors v ON v.collection_id = s.id AND v.key = NEW.key WHERE s.collection = 'code';
END;
`;

/** The schema of a project's code index, a database of its own next to the project's. */
export const codeSchema: DatabaseSchema = {
  version: 4,
  name: "code index",
  sql: [PROJECT_INFO_SCHEMA, EMBEDDING_VERSIONS_SCHEMA, VECTOR_SCHEMA, OUTBOX_SCHEMA, CODE_TABLES].join(""),
};
