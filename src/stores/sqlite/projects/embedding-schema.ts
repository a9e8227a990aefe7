/** The tables that a project's database and its code index both have: the project that the file belongs to, and its embedding versions. */
export const PROJECT_INFO_SCHEMA = `
CREATE TABLE project_info (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  project_id TEXT NOT NULL,
  created_at TIMESTAMP NOT NULL
);
`;

export const EMBEDDING_VERSIONS_SCHEMA = `
CREATE TABLE embedding_versions (
  version_id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection TEXT NOT NULL,
  model_name TEXT NOT NULL,
  model_version TEXT NOT NULL,
  embedding_dimension INTEGER NOT NULL CHECK (embedding_dimension > 0),
  is_current BOOLEAN NOT NULL DEFAULT 0 CHECK (is_current IN (0, 1)),
  created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE (collection, model_name, model_version, embedding_dimension)
);
CREATE UNIQUE INDEX idx_embedding_versions_current ON embedding_versions (collection) WHERE is_current = 1;
`;
