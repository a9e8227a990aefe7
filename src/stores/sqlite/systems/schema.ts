import type { DatabaseSchema } from "../../../model/schema.ts";
import { SYSTEM_SCHEMA_VERSION } from "../../../model/system-rules.ts";

/** The schema of a system's database. */
export const systemSchema: DatabaseSchema = {
  version: 1,
  name: "system",
  sql: `
    CREATE TABLE metadata (
      key TEXT PRIMARY KEY,
      value TEXT NOT NULL
    );
    INSERT INTO metadata (key, value) VALUES ('schema_version', '${SYSTEM_SCHEMA_VERSION}'), ('created_at', datetime('now'));
    -- Every commit of a component counts its version up: it guards all that the component has.
    CREATE TABLE components (
      component_name TEXT PRIMARY KEY,
      version INTEGER NOT NULL,
      updated_at TEXT NOT NULL
    ) WITHOUT ROWID;
    -- The inbox. A message is claimed by its row.
    CREATE TABLE checkpoints (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      component_name TEXT NOT NULL,
      port_name TEXT NOT NULL,
      message_id TEXT NOT NULL,
      offset INTEGER NOT NULL,
      timestamp REAL NOT NULL,
      status TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      reason TEXT,
      data BLOB,
      UNIQUE (component_name, port_name, message_id)
    );
    CREATE INDEX idx_component_port ON checkpoints (component_name, port_name, offset);
    CREATE INDEX idx_timestamp ON checkpoints (timestamp);
    CREATE INDEX idx_unfinished ON checkpoints (status, component_name, port_name, offset) WHERE status <> 'done';
    CREATE TABLE ports (
      component_name TEXT NOT NULL,
      port_name TEXT NOT NULL,
      first_offset INTEGER NOT NULL,
      position INTEGER NOT NULL,
      highest INTEGER NOT NULL,
      pruned_to INTEGER NOT NULL,
      PRIMARY KEY (component_name, port_name)
    ) WITHOUT ROWID;
    -- Offsets that were received above the position of their port: empty as long as nothing is missing.
    CREATE TABLE offsets_ahead (
      component_name TEXT NOT NULL,
      port_name TEXT NOT NULL,
      offset INTEGER NOT NULL,
      PRIMARY KEY (component_name, port_name, offset)
    ) WITHOUT ROWID;
    -- What components remember.
    CREATE TABLE state (
      component_name TEXT NOT NULL,
      key TEXT NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (component_name, key)
    );
    CREATE TABLE snapshots (
      sequence INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      created_at TEXT NOT NULL,
      mode TEXT NOT NULL,
      complete INTEGER NOT NULL DEFAULT 0,
      components INTEGER NOT NULL DEFAULT 0,
      messages INTEGER NOT NULL DEFAULT 0,
      state_keys INTEGER NOT NULL DEFAULT 0,
      bytes INTEGER NOT NULL DEFAULT 0,
      checksum TEXT
    );
    CREATE TABLE snapshot_parts (
      snapshot_id TEXT NOT NULL REFERENCES snapshots (id) ON DELETE CASCADE,
      component_name TEXT NOT NULL,
      checksum TEXT NOT NULL,
      data BLOB NOT NULL,
      PRIMARY KEY (snapshot_id, component_name)
    );
    -- Who committed how often, in slices of time: whether a system has outgrown a file is measured by it, across processes.
    CREATE TABLE write_activity (
      slice INTEGER NOT NULL,
      component TEXT NOT NULL,
      process TEXT NOT NULL,
      commits INTEGER NOT NULL,
      PRIMARY KEY (slice, component, process)
    ) WITHOUT ROWID;
  `,
};
