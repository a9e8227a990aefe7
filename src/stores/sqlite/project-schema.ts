import type { Migration } from "./migrations.ts";

/** The schema of a project's database. Steps are only ever added. */
export const projectMigrations: readonly Migration[] = [
  {
    id: 1,
    name: "checkpoints",
    sql: `
      CREATE TABLE project_info (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        project_id TEXT NOT NULL,
        created_at TIMESTAMP NOT NULL
      );
      CREATE TABLE checkpoints (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        summary TEXT NOT NULL,
        description TEXT NOT NULL,
        context TEXT NOT NULL,
        token_count INTEGER NOT NULL CHECK (token_count >= 0),
        created_at TIMESTAMP NOT NULL,
        updated_at TIMESTAMP NOT NULL
      );
      CREATE INDEX checkpoints_created ON checkpoints (created_at DESC, id);
      CREATE INDEX checkpoints_updated ON checkpoints (updated_at DESC, id);
      -- Tags are rows, so that a comma, a quote or a percent sign in one is just a character.
      CREATE TABLE checkpoint_tags (
        checkpoint_key INTEGER NOT NULL REFERENCES checkpoints (key) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        tag TEXT NOT NULL,
        folded TEXT NOT NULL,
        PRIMARY KEY (checkpoint_key, position)
      ) WITHOUT ROWID;
      CREATE INDEX checkpoint_tags_folded ON checkpoint_tags (folded, checkpoint_key);
    `,
  },
];
