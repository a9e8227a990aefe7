/**
 * Tables of the vector index. `vectors` is the truth; everything else is derived from it, written in the same
 * transaction, and can be made again by `rebuild`.
 *
 * A space is one collection under one embedding version; its dimension never changes. `change` grows with every
 * transaction that touches the space and `layout` with every one that touches its packs, so that a reader in any
 * process knows at once what to read again.
 *
 * Codes (int8) live in packs of 128 KiB. A pack is never altered, only replaced under a new id, so its id names its
 * content. Small changes gather in `vector_recent`, where a row overrides whatever packs hold for its key and a row
 * without code says the key is gone; `packed` counts the overridden codes. `fold` moves them into packs.
 * `patience` says when a search through lists may stop; it is measured on the vectors themselves.
 * `list` is null in a pack that belongs to no inverted list, and -1 in one that holds the centroids of the lists.
 */
export const VECTOR_SCHEMA = `
CREATE TABLE vector_spaces (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection TEXT NOT NULL,
  version_id INTEGER NOT NULL,
  dimension INTEGER NOT NULL,
  change INTEGER NOT NULL DEFAULT 0,
  layout INTEGER NOT NULL DEFAULT 0,
  patience INTEGER NOT NULL DEFAULT 32,
  arranging_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (collection, version_id)
) STRICT;
CREATE TABLE vectors (
  space INTEGER NOT NULL REFERENCES vector_spaces (id),
  key INTEGER NOT NULL,
  vector BLOB NOT NULL,
  UNIQUE (space, key)
) STRICT;
CREATE TABLE vector_recent (
  space INTEGER NOT NULL,
  key INTEGER NOT NULL,
  change INTEGER NOT NULL,
  packed INTEGER NOT NULL,
  scale REAL,
  code BLOB,
  PRIMARY KEY (space, key)
) STRICT;
CREATE INDEX vector_recent_change ON vector_recent (space, change);
CREATE TABLE vector_packs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  space INTEGER NOT NULL,
  list INTEGER,
  count INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  ready INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX vector_packs_space ON vector_packs (space, ready);
CREATE TABLE vector_pack_bodies (
  id INTEGER PRIMARY KEY,
  keys BLOB NOT NULL,
  scales BLOB NOT NULL,
  codes BLOB NOT NULL
) STRICT;
`;
