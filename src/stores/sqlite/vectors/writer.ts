import { CairnError } from "../../../model/errors.ts";
import type { SqliteTx } from "../driver/driver.ts";
import { encode } from "./codes.ts";
import { findSpace, openSpace, type Space } from "./collections.ts";
import { type Change, recordChanges } from "./compact.ts";
import { clearCodes, type RepairReport, rebuild, repairText, toVector } from "./rebuild.ts";
import { DamagedCodes } from "./segments.ts";

export interface VectorEntry {
  /** The integer key of the record the vector belongs to. */
  readonly key: number;
  readonly vector: Float32Array;
}

/** Vectors of one file. Everything happens inside the caller's transaction, vectors and codes together. */
export interface VectorWriter {
  /** Stores vectors, each in place of the one its key had. A collection's version is made by its first vector. */
  put(collection: string, versionId: number, entries: readonly VectorEntry[]): void;
  /** Keys that have no vector are passed over. */
  remove(collection: string, versionId: number, keys: Iterable<number>): void;
  /** Removes every vector of this version. */
  dropVersion(collection: string, versionId: number): void;
}

export interface VectorWriterOptions {
  /** Told when codes turned out to be damaged and were made again. */
  readonly onRepair?: ((report: RepairReport) => void) | undefined;
}

/** Its records are made from files that the user has, and change too often to rewrite packs for each. */
const DERIVED_COLLECTION = "code";

/** The largest key: the kernel counts in 32 bits. */
export const MAX_KEY = 2 ** 31 - 1;

export function vectorWriter(tx: SqliteTx, { onRepair }: VectorWriterOptions = {}): VectorWriter {
  function record(collection: string, versionId: number, space: Space, changes: ReadonlyMap<number, Change>): void {
    try {
      recordChanges(tx, space, changes, { erase: collection !== DERIVED_COLLECTION });
    } catch (error) {
      if (!(error instanceof DamagedCodes)) throw error;
      // The vectors are stored by now, so the codes made from them include these changes.
      const report = { collection, versionId, reason: error.message, ...rebuild(tx, space) };
      if (onRepair) onRepair(report);
      else tx.notice?.(repairText(report));
    }
  }

  return {
    put(collection, versionId, entries) {
      const [first] = entries;
      if (!first) return;
      const units = new Map(entries.map(({ key, vector }) => [assertKey(key), unit(key, vector, first.vector.length)]));
      const space = openSpace(tx, collection, versionId, first.vector.length);
      const changes = new Map<number, Change>();
      for (const [key, vector] of units) {
        const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
        const { changes: added } = tx.run(
          "INSERT INTO vectors (space, key, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
          space.id,
          key,
          bytes,
        );
        const existed = added === 0;
        if (existed) tx.run("UPDATE vectors SET vector = ? WHERE space = ? AND key = ?", bytes, space.id, key);
        changes.set(key, { code: encode(vector), existed });
      }
      record(collection, versionId, space, changes);
    },

    remove(collection, versionId, keys) {
      const space = findSpace(tx, collection, versionId);
      if (!space) return;
      const changes = new Map<number, Change>();
      for (const key of keys)
        if (tx.run("DELETE FROM vectors WHERE space = ? AND key = ?", space.id, key).changes > 0)
          changes.set(key, { code: null, existed: true });
      record(collection, versionId, space, changes);
    },

    dropVersion(collection, versionId) {
      const space = findSpace(tx, collection, versionId);
      if (!space) return;
      clearCodes(tx, space.id);
      tx.run("DELETE FROM vectors WHERE space = ?", space.id);
      tx.run("DELETE FROM vector_spaces WHERE id = ?", space.id);
    },
  };
}

/** What is stored, for callers inside a transaction. */
export function vectorReader(tx: SqliteTx) {
  return {
    /** How many vectors this version has. */
    count(collection: string, versionId: number): number {
      const space = findSpace(tx, collection, versionId);
      return space ? tx.get<{ count: number }>("SELECT count(*) AS count FROM vectors WHERE space = ?", space.id)!.count : 0;
    },
    /** The vector of a key, of length one; undefined if there is none, or if it is damaged. */
    get(collection: string, versionId: number, key: number): Float32Array | undefined {
      const space = findSpace(tx, collection, versionId);
      const row = space && tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors WHERE space = ? AND key = ?", space.id, key);
      return row && toVector(row.vector, space.dimension);
    },
  };
}

function assertKey(key: number): number {
  if (!Number.isInteger(key) || key < 0 || key > MAX_KEY)
    throw new CairnError("invalid_input", `A vector's key is a whole number from 0 to ${MAX_KEY}, not ${key}.`);
  return key;
}

/** The vector at length one. A vector without direction has no place in a ranking by angle and is refused. */
export function unit(key: number | string, vector: Float32Array, dimension: number): Float32Array {
  const refuse = (what: string) =>
    new CairnError("invalid_input", `The vector of ${key} ${what}. Embed the text again.`, { details: { key } });
  if (vector.length !== dimension) throw refuse(`has ${vector.length} components where others have ${dimension}`);
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += vector[i]! * vector[i]!;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length)) throw refuse("holds a value that is not a finite number");
  if (length < 1e-20) throw refuse("is zero");
  // One that already has length one is kept to the last bit.
  return Math.abs(length - 1) < 1e-6 ? vector : vector.map((value) => value / length);
}
