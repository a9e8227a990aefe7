import { PIECES_MAX } from "../../../model/stored-record.ts";

/**
 * `knowledge` is authoritative. `embedding_records` holds each record once per embedding version, with its vector, for people who read
 * the database with SQL: triggers write it in the transaction of any process that changes a record or a vector. Parts of long records
 * are not mirrored.
 */
export const KNOWLEDGE_SCHEMA = `
CREATE TABLE knowledge (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('skill', 'remediation', 'troubleshooting', 'faq')),
  category TEXT NOT NULL,
  subcategory TEXT NOT NULL,
  question TEXT NOT NULL,
  answer TEXT NOT NULL,
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  signature TEXT NOT NULL,
  pieces INTEGER NOT NULL CHECK (pieces BETWEEN 1 AND ${PIECES_MAX}),
  successes INTEGER NOT NULL DEFAULT 0 CHECK (successes >= 0),
  uses INTEGER NOT NULL DEFAULT 0 CHECK (uses >= successes),
  outdated INTEGER NOT NULL DEFAULT 0 CHECK (outdated >= 0),
  source TEXT NOT NULL,
  anchors TEXT NOT NULL,
  superseded_by TEXT NOT NULL,
  created_at TIMESTAMP NOT NULL,
  updated_at TIMESTAMP NOT NULL,
  created_order TIMESTAMP NOT NULL,
  revision INTEGER NOT NULL,
  checksum TEXT NOT NULL
);
CREATE INDEX knowledge_created ON knowledge (created_order DESC, id);
CREATE INDEX knowledge_category ON knowledge (category, subcategory);
CREATE INDEX knowledge_long ON knowledge (id, pieces) WHERE pieces > 1;
CREATE INDEX knowledge_signature ON knowledge (signature) WHERE signature <> '';
-- The terms are stored with the index, because secure-delete needs them to erase them from every page.
CREATE VIRTUAL TABLE knowledge_fts USING fts5 (
  terms, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co' tokenchars '_$'"
);
INSERT INTO knowledge_fts (knowledge_fts, rank) VALUES ('secure-delete', 1);
CREATE TABLE embedding_records (
  record_id INTEGER PRIMARY KEY AUTOINCREMENT,
  template_id TEXT NOT NULL REFERENCES knowledge (id),
  version_id INTEGER NOT NULL REFERENCES embedding_versions (version_id) ON DELETE RESTRICT,
  embedding_vector BLOB NOT NULL,
  category TEXT NOT NULL,
  subcategory TEXT NOT NULL,
  question_text TEXT NOT NULL,
  answer_text TEXT NOT NULL,
  content_hash TEXT NOT NULL CHECK (length(content_hash) = 64),
  success_rate REAL NOT NULL DEFAULT 0.5 CHECK (success_rate >= 0.0 AND success_rate <= 1.0),
  usage_count INTEGER NOT NULL DEFAULT 0 CHECK (usage_count >= 0),
  created_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE (template_id, version_id)
);
CREATE INDEX idx_embedding_records_version ON embedding_records (version_id);
CREATE INDEX idx_embedding_records_category ON embedding_records (category, subcategory);
CREATE INDEX idx_embedding_records_hash ON embedding_records (content_hash);
CREATE TRIGGER update_embedding_records_timestamp AFTER UPDATE ON embedding_records WHEN NEW.updated_at = OLD.updated_at
BEGIN
  UPDATE embedding_records SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE record_id = NEW.record_id;
END;
CREATE TRIGGER knowledge_vector_added AFTER INSERT ON vectors
  WHEN (SELECT collection FROM vector_collections WHERE id = NEW.collection_id) = 'knowledge' AND NEW.key % ${PIECES_MAX} = 0
BEGIN
  INSERT OR REPLACE INTO embedding_records
    (template_id, version_id, embedding_vector, category, subcategory, question_text, answer_text, content_hash, success_rate, usage_count)
    SELECT k.id, s.version_id, NEW.vector, k.category, k.subcategory, k.question, k.answer, k.content_hash, (k.successes + 1.0) / (k.uses + 2), k.uses
      FROM knowledge k JOIN vector_collections s ON s.id = NEW.collection_id WHERE k.key = NEW.key / ${PIECES_MAX};
END;
CREATE TRIGGER knowledge_vector_changed AFTER UPDATE OF vector ON vectors
  WHEN (SELECT collection FROM vector_collections WHERE id = NEW.collection_id) = 'knowledge' AND NEW.key % ${PIECES_MAX} = 0
BEGIN
  UPDATE embedding_records SET embedding_vector = NEW.vector
   WHERE template_id = (SELECT id FROM knowledge WHERE key = NEW.key / ${PIECES_MAX}) AND version_id = (SELECT version_id FROM vector_collections WHERE id = NEW.collection_id);
END;
CREATE TRIGGER knowledge_vector_removed AFTER DELETE ON vectors
  WHEN (SELECT collection FROM vector_collections WHERE id = OLD.collection_id) = 'knowledge' AND OLD.key % ${PIECES_MAX} = 0
BEGIN
  DELETE FROM embedding_records
   WHERE template_id = (SELECT id FROM knowledge WHERE key = OLD.key / ${PIECES_MAX}) AND version_id = (SELECT version_id FROM vector_collections WHERE id = OLD.collection_id);
END;
CREATE TRIGGER knowledge_changed AFTER UPDATE ON knowledge
BEGIN
  UPDATE embedding_records
     SET category = NEW.category, subcategory = NEW.subcategory, question_text = NEW.question, answer_text = NEW.answer,
         content_hash = NEW.content_hash, success_rate = (NEW.successes + 1.0) / (NEW.uses + 2), usage_count = NEW.uses
   WHERE template_id = NEW.id;
END;
`;
