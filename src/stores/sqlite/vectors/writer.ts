import { CairnError } from "../../../model/errors.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { MAX_DIMENSION } from "./codes.ts";
import {
  assertDimension,
  type Code,
  countDelta,
  DERIVED_COLLECTION,
  encode,
  findCollection,
  readCollection,
  storeVector,
  unit,
  type VectorCollection,
  writeDelta,
} from "./collection.ts";
import { codeCount, compact } from "./compact.ts";
import { clearCodes, type RepairReport, rebuild, repairText } from "./rebuild.ts";
import { DamagedCodes } from "./segments.ts";

export interface VectorEntry {
  /** The integer key of the record the vector belongs to. */
  readonly key: number;
  readonly vector: Float32Array;
}

/** Writes vectors and their codes in the caller's transaction. */
export interface VectorWriter {
  /** Stores vectors and replaces existing ones. The first vector creates the version of a collection. */
  put(name: string, versionId: number, entries: readonly VectorEntry[]): void;
  /** Removes the vectors of these keys; ignores keys without one. */
  remove(name: string, versionId: number, keys: Iterable<number>): void;
  /** Removes every vector of this version. */
  dropVersion(name: string, versionId: number): void;
}

export interface VectorWriterOptions {
  /** Called when damaged codes were rebuilt. */
  readonly onRepair?: ((report: RepairReport) => void) | undefined;
}

/** The largest key: the kernel counts in 32 bits. */
const MAX_KEY = 2 ** 31 - 1;

export function vectorWriter(tx: SqliteTx, { onRepair }: VectorWriterOptions = {}): VectorWriter {
  function record(name: string, versionId: number, collection: VectorCollection, changes: ReadonlyMap<number, Change>): void {
    try {
      // Records of code change too often to rewrite segments for each.
      recordChanges(tx, collection, changes, { erase: name !== DERIVED_COLLECTION });
    } catch (error) {
      if (!(error instanceof DamagedCodes)) throw error;
      // The vectors are stored already, so the rebuilt codes include these changes.
      const report = { collection: name, versionId, reason: error.message, ...rebuild(tx, collection) };
      if (onRepair) onRepair(report);
      else tx.notice?.(repairText(report));
    }
  }

  return {
    put(name, versionId, entries) {
      const [first] = entries;
      if (!first) return;
      const units = new Map(entries.map(({ key, vector }) => [assertKey(key), unit(key, vector, first.vector.length)]));
      const collection = openCollection(tx, name, versionId, first.vector.length);
      const changes = new Map<number, Change>();
      for (const [key, vector] of units) {
        const code = encode(vector);
        const bytes = storeVector(name, vector, code);
        const { changes: added } = tx.run(
          "INSERT INTO vectors (collection_id, key, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
          collection.id,
          key,
          bytes,
        );
        const existed = added === 0;
        if (existed) tx.run("UPDATE vectors SET vector = ? WHERE collection_id = ? AND key = ?", bytes, collection.id, key);
        changes.set(key, { code, existed });
      }
      record(name, versionId, collection, changes);
    },

    remove(name, versionId, keys) {
      const collection = findCollection(tx, name, versionId);
      if (!collection) return;
      const changes = new Map<number, Change>();
      for (const key of keys)
        if (tx.run("DELETE FROM vectors WHERE collection_id = ? AND key = ?", collection.id, key).changes > 0)
          changes.set(key, { code: null, existed: true });
      record(name, versionId, collection, changes);
    },

    dropVersion(name, versionId) {
      const collection = findCollection(tx, name, versionId);
      if (!collection) return;
      clearCodes(tx, collection.id);
      tx.run("DELETE FROM vectors WHERE collection_id = ?", collection.id);
      tx.run("DELETE FROM vector_collections WHERE id = ?", collection.id);
    },
  };
}

function assertKey(key: number): number {
  if (!Number.isInteger(key) || key < 0 || key > MAX_KEY)
    throw new CairnError("invalid_input", `A vector's key is a whole number from 0 to ${MAX_KEY}, not ${key}.`);
  return key;
}

/** Returns the collection for vectors of this dimension and creates it if necessary. */
function openCollection(tx: SqliteTx, name: string, versionId: number, dimension: number): VectorCollection {
  const found = findCollection(tx, name, versionId);
  if (found) {
    assertDimension(found, dimension);
    return found;
  }
  if (dimension < 1 || dimension > MAX_DIMENSION)
    throw new CairnError("invalid_input", `A vector has 1 to ${MAX_DIMENSION} components, not ${dimension}.`);
  const { lastId } = tx.run(
    "INSERT INTO vector_collections (collection, version_id, dimension) VALUES (?, ?, ?)",
    name,
    versionId,
    dimension,
  );
  return readCollection(tx, lastId)!;
}

/** The change of a key in this transaction. */
export interface Change {
  /** Its new code, or null when it was removed. */
  readonly code: Code | null;
  /** Whether it had a vector before. */
  readonly existed: boolean;
}

/** New codes in the delta before a compaction: a save costs one small row, and a search reads all of them in 0.3 ms. */
const FRESH_MAX = 512;
/** Overridden codes before a compaction: several of them should fall into each segment that is rewritten. */
const OVERRIDDEN_MAX = 512;
const OVERRIDDEN_SHARE = 1 / 64;
/** Segments rewritten per transaction (8 MB), or one per eight changes if that is more: writes block the caller's thread. */
const REWRITE_MAX = 64;
const REWRITE_PER_CHANGE = 1 / 8;

/**
 * Records the changes of a transaction in the codes: as delta rows, or in segments when the delta is full. With `erase`, no code of a removed or
 * replaced key stays in a segment, because a code reveals the topic of the deleted text.
 */
function recordChanges(tx: SqliteTx, collection: VectorCollection, changes: ReadonlyMap<number, Change>, { erase = false } = {}): void {
  if (changes.size === 0) return;
  const change = collection.change + 1;
  // Every change counts as a new delta row; a key that changes twice only compacts slightly early.
  const waiting = countDelta(tx, collection.id);
  for (const { existed } of changes.values()) existed ? waiting.overridden++ : waiting.fresh++;
  const overriddenMax =
    waiting.overridden <= OVERRIDDEN_MAX ? OVERRIDDEN_MAX : Math.max(OVERRIDDEN_MAX, codeCount(tx, collection.id) * OVERRIDDEN_SHARE);
  const rewrite = waiting.overridden > overriddenMax;
  const erasing = erase && anyInSegments(tx, collection.id, changes);
  const full = rewrite || erasing || waiting.fresh > FRESH_MAX;
  const limits = erasing
    ? { keep: 0, rewriteMax: Number.POSITIVE_INFINITY }
    : rewrite
      ? { keep: overriddenMax / 2, rewriteMax: Math.max(REWRITE_MAX, changes.size * REWRITE_PER_CHANGE) }
      : { keep: Number.POSITIVE_INFINITY, rewriteMax: 0 };
  if (full) compact(tx, collection, changes, limits);
  else for (const [key, { code, existed }] of changes) writeDelta(tx, collection.id, change, key, { code, stale: existed ? 1 : 0 });
  tx.run("UPDATE vector_collections SET change = ?, layout = layout + ? WHERE id = ?", change, full ? 1 : 0, collection.id);
}

/** Returns whether a segment may contain the old code of one of these keys. */
function anyInSegments(tx: SqliteTx, collectionId: number, changes: ReadonlyMap<number, Change>): boolean {
  for (const [key, { existed }] of changes) {
    if (!existed) continue;
    const delta = tx.get<{ stale: number }>("SELECT stale FROM vector_delta WHERE collection_id = ? AND key = ?", collectionId, key);
    if (delta?.stale !== 0) return true;
  }
  return false;
}
