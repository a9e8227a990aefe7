import type { Migration } from "../../model/migration.ts";

/** The tables of a project's schema. Steps are only ever added. */
export const projectMigrations: readonly Migration[] = [
  {
    id: 1,
    name: "checkpoints",
    sql: `
      CREATE TABLE project_info (
        id integer PRIMARY KEY CHECK (id = 1),
        project_id text NOT NULL,
        created_at timestamptz NOT NULL
      );
      -- Ids are compared byte by byte, so that ties come in the same order in every store, whatever the database's language.
      CREATE TABLE checkpoints (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        summary text NOT NULL,
        description text NOT NULL,
        -- Text and not jsonb: what was saved comes back with its keys in the same order.
        context text NOT NULL,
        tags text[] NOT NULL,
        folded_tags text[] NOT NULL,
        token_count integer NOT NULL CHECK (token_count >= 0),
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL
      );
      CREATE INDEX checkpoints_created ON checkpoints (created_at DESC, id);
      CREATE INDEX checkpoints_updated ON checkpoints (updated_at DESC, id);
      CREATE INDEX checkpoints_folded_tags ON checkpoints USING gin (folded_tags);
    `,
  },
];
