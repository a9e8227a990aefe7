import type { DatabaseSchema } from "../../../model/schema.ts";
import { PIECES_MAX } from "../../../model/stored-record.ts";
import { VECTOR_SCHEMA } from "../vectors/schema.ts";
import { DELETED_SCHEMA } from "./deleted-records.ts";
import { EMBEDDING_VERSIONS_SCHEMA, PROJECT_INFO_SCHEMA } from "./embedding-schema.ts";
import { EVENT_SCHEMA } from "./event-schema.ts";
import { IDEMPOTENCY_SCHEMA } from "./idempotency.ts";
import { KNOWLEDGE_SCHEMA } from "./knowledge-schema.ts";
import { OUTBOX_SCHEMA } from "./outbox.ts";

/** The schema of a project's database. */
export const projectSchema: DatabaseSchema = {
  version: 7,
  name: "project",
  sql: `
    ${PROJECT_INFO_SCHEMA}
    CREATE TABLE checkpoints (
      key INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      summary TEXT NOT NULL,
      description TEXT NOT NULL,
      context TEXT NOT NULL,
      -- A JSON list; the id of the record that replaces this one, or an empty text.
      anchors TEXT NOT NULL,
      superseded_by TEXT NOT NULL,
      token_count INTEGER NOT NULL CHECK (token_count >= 0),
      -- The texts that are embedded: the whole text, and the parts of a long one.
      pieces INTEGER NOT NULL CHECK (pieces BETWEEN 1 AND ${PIECES_MAX}),
      created_at TIMESTAMP NOT NULL,
      updated_at TIMESTAMP NOT NULL,
      -- The places in the two orders: the times above, unless they lay in the future.
      created_order TIMESTAMP NOT NULL,
      updated_order TIMESTAMP NOT NULL,
      revision INTEGER NOT NULL,
      checksum TEXT NOT NULL
    );
    CREATE INDEX checkpoints_created ON checkpoints (created_order DESC, id);
    CREATE INDEX checkpoints_updated ON checkpoints (updated_order DESC, id);
    CREATE INDEX checkpoints_long ON checkpoints (id, pieces) WHERE pieces > 1;
    -- Damaged records that a repair set aside, their rows as JSON.
    CREATE TABLE quarantined_records (
      quarantine_id INTEGER PRIMARY KEY AUTOINCREMENT,
      collection TEXT NOT NULL,
      record_id TEXT NOT NULL,
      reason TEXT NOT NULL,
      quarantined_at TIMESTAMP NOT NULL,
      raw TEXT NOT NULL
    );
    -- Tags are rows, so that a comma, a quote or a percent sign in one is just a character.
    CREATE TABLE checkpoint_tags (
      checkpoint_key INTEGER NOT NULL REFERENCES checkpoints (key) ON DELETE CASCADE,
      position INTEGER NOT NULL,
      tag TEXT NOT NULL,
      folded TEXT NOT NULL,
      PRIMARY KEY (checkpoint_key, position)
    ) WITHOUT ROWID;
    CREATE INDEX checkpoint_tags_folded ON checkpoint_tags (folded, checkpoint_key);
    ${EMBEDDING_VERSIONS_SCHEMA}
    ${VECTOR_SCHEMA}
    -- Cairn splits the text into stems, identifiers into their parts too; the index splits at spaces only.
    -- The terms are stored with the index, because secure-delete needs them to erase them from every page.
    CREATE VIRTUAL TABLE checkpoint_fts USING fts5 (
      terms, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co' tokenchars '_$'"
    );
    INSERT INTO checkpoint_fts (checkpoint_fts, rank) VALUES ('secure-delete', 1);
    ${KNOWLEDGE_SCHEMA}
    ${DELETED_SCHEMA}
    ${EVENT_SCHEMA}
    ${IDEMPOTENCY_SCHEMA}
    ${OUTBOX_SCHEMA}
  `,
};
