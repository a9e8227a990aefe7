/**
 * Tables of the vector index. `vectors` is authoritative. Everything else is derived from it, written in the same transaction, and
 * rebuilt by `rebuild`.
 *
 * `key` is that of a chunk of code, or of a record and one of its pieces: `record key × 16 + piece`.
 *
 * A vector collection is one collection of records under one embedding version; its dimension never changes. `change` increases with
 * every transaction that touches the collection, and `layout` with every one that touches its segments. A reader in any process
 * compares them to learn what to read again.
 *
 * Codes (int8) are stored in segments of 128 KiB. A segment is immutable: it is replaced under a new id, so the id names its content.
 * Small changes collect in `vector_delta`. A delta row overrides the codes that segments have for its key, and a row without a code
 * deletes the key; `stale` is the number of overridden codes. `compact` moves delta rows into segments.
 * `probes` is the number of IVF lists without a better hit after which a search stops; calibration measures it on the vectors.
 * `list` is null in a segment outside the IVF lists, and -1 in a segment with the centroids of the lists.
 */
export const VECTOR_SCHEMA = `
CREATE TABLE vector_collections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection TEXT NOT NULL,
  version_id INTEGER NOT NULL,
  dimension INTEGER NOT NULL,
  change INTEGER NOT NULL DEFAULT 0,
  layout INTEGER NOT NULL DEFAULT 0,
  probes INTEGER NOT NULL DEFAULT 32,
  building_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (collection, version_id)
) STRICT;
CREATE TABLE vectors (
  collection_id INTEGER NOT NULL REFERENCES vector_collections (id),
  key INTEGER NOT NULL,
  vector BLOB NOT NULL,
  UNIQUE (collection_id, key)
) STRICT;
CREATE TABLE vector_delta (
  collection_id INTEGER NOT NULL,
  key INTEGER NOT NULL,
  change INTEGER NOT NULL,
  stale INTEGER NOT NULL,
  scale REAL,
  code BLOB,
  PRIMARY KEY (collection_id, key)
) STRICT;
CREATE INDEX vector_delta_change ON vector_delta (collection_id, change);
CREATE TABLE vector_segments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection_id INTEGER NOT NULL,
  list INTEGER,
  count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  ready INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX vector_segments_collection ON vector_segments (collection_id, ready);
CREATE TABLE vector_segment_bodies (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL,
  scales BLOB NOT NULL,
  codes BLOB NOT NULL
) STRICT;
`;
