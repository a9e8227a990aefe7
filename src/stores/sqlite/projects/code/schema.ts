/**
 * `current_chunks` is what searches see: chunks of the generation that their file is at. A commit inserts the next generation,
 * moves the file to it and deletes the one before, all in one transaction. Generations come from one counter per project, so
 * that a chunk's id is never used again, not even for a file that was removed and came back.
 */
export const CODE_SCHEMA = `
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
CREATE TABLE file_moves (
  move_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  old_path TEXT NOT NULL,
  new_path TEXT NOT NULL,
  detected_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
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
  text TEXT NOT NULL,
  UNIQUE (file_key, generation, chunk_index)
);
CREATE VIEW current_chunks AS
  SELECT c.*, 1 AS revision, f.file_path, f.language, f.content_hash, f.indexed_at
    FROM code_chunks c JOIN indexed_files f ON f.file_key = c.file_key AND f.generation = c.generation;
CREATE VIRTUAL TABLE code_words USING fts5 (
  words, content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2 tokenchars '_$'"
);
CREATE TABLE code_definitions (
  file_key INTEGER NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  line INTEGER NOT NULL,
  col INTEGER NOT NULL,
  parents TEXT NOT NULL
);
CREATE INDEX code_definitions_name ON code_definitions (name);
CREATE INDEX code_definitions_file ON code_definitions (file_key);
CREATE TABLE code_references (
  file_key INTEGER NOT NULL,
  name TEXT NOT NULL,
  count INTEGER NOT NULL,
  positions BLOB NOT NULL,
  PRIMARY KEY (file_key, name)
) WITHOUT ROWID;
CREATE INDEX code_references_name ON code_references (name);
`;

/**
 * The index in half the room. Texts are compressed, several chunks together, and keyed by numbers that are never used again. A name
 * has one row per file; the outline holds the definitions and says which names a file has, so that names are stored once. What was
 * indexed before goes, its hashes too: it is derived from files, and the next index brings it back.
 */
export const COMPACT_CODE_SCHEMA = `
DROP VIEW current_chunks;
DELETE FROM vectors WHERE space IN (SELECT id FROM vector_spaces WHERE collection = 'code');
DELETE FROM vector_recent WHERE space IN (SELECT id FROM vector_spaces WHERE collection = 'code');
DELETE FROM vector_pack_bodies WHERE id IN (SELECT p.id FROM vector_packs p JOIN vector_spaces s ON s.id = p.space WHERE s.collection = 'code');
DELETE FROM vector_packs WHERE space IN (SELECT id FROM vector_spaces WHERE collection = 'code');
DELETE FROM vector_spaces WHERE collection = 'code';
DELETE FROM chunk_generations;
DELETE FROM indexed_files;
DROP TABLE code_words;
DROP TABLE code_definitions;
DROP TABLE code_references;
DROP TABLE code_chunks;
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
-- The outer join costs nothing where the text is not asked for: SQLite leaves it out.
CREATE VIEW current_chunks AS
  SELECT c.*, 1 AS revision, f.file_path, f.language, f.content_hash, f.indexed_at, t.body
    FROM code_chunks c JOIN indexed_files f ON f.file_key = c.file_key AND f.generation = c.generation
    LEFT JOIN code_texts t ON t.key = c.text_key;
CREATE VIRTUAL TABLE code_words USING fts5 (
  words, content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2 tokenchars '_$'"
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
-- A move changes a chunk's id and not its vector: an index outside has to know of it all the same.
CREATE TRIGGER code_chunks_outbox AFTER UPDATE OF id ON code_chunks
BEGIN
  INSERT OR REPLACE INTO vector_outbox (collection, version_id, key)
  SELECT s.collection, s.version_id, NEW.key FROM vector_index JOIN vector_spaces s USING (collection)
    JOIN vectors v ON v.space = s.id AND v.key = NEW.key WHERE s.collection = 'code';
END;
`;
