import { CairnError } from "../../../model/errors.ts";
import type { SqliteTx } from "../driver/driver.ts";

/** The vectors of one collection of records under one embedding version. */
export interface VectorCollection {
  readonly id: number;
  readonly dimension: number;
  /** Increases with every transaction that changes the collection. */
  readonly change: number;
  /** Increases with every transaction that changes its segments. */
  readonly layout: number;
  /** Consecutive IVF lists without a better hit after which a search stops. */
  readonly probes: number;
}

export function findCollection(tx: SqliteTx, name: string, versionId: number): VectorCollection | undefined {
  return tx.get<VectorCollection>(`SELECT ${COLUMNS} FROM vector_collections WHERE collection = ? AND version_id = ?`, name, versionId);
}

export function readCollection(tx: SqliteTx, id: number): VectorCollection | undefined {
  return tx.get<VectorCollection>(`SELECT ${COLUMNS} FROM vector_collections WHERE id = ?`, id);
}

const COLUMNS = "id, dimension, change, layout, probes";

export function assertDimension(collection: VectorCollection, dimension: number): void {
  if (dimension !== collection.dimension)
    throw new CairnError(
      "invalid_input",
      `This embedding version has vectors of ${collection.dimension} components, not ${dimension}. Another model needs another version.`,
      { details: { expected: collection.dimension, got: dimension } },
    );
}

/** Returns the vector at unit length. A zero vector has no direction and is refused. */
export function unit(key: number | string, vector: Float32Array, dimension: number): Float32Array {
  const refuse = (what: string) =>
    new CairnError("invalid_input", `The vector of ${key} ${what}. Embed the text again.`, { details: { key } });
  if (vector.length !== dimension) throw refuse(`has ${vector.length} components where others have ${dimension}`);
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += vector[i]! * vector[i]!;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length)) throw refuse("holds a value that is not a finite number");
  if (length < 1e-20) throw refuse("is zero");
  // A unit vector is kept to the last bit.
  return Math.abs(length - 1) < 1e-6 ? vector : vector.map((value) => value / length);
}

/**
 * The collection whose records come from files of the user. There are many of them: the table `vectors` has them as int8 with one scale, a
 * quarter of the bytes of the float32 vectors that other collections have.
 */
export const DERIVED_COLLECTION = "code";

const SCALE_BYTES = 4;
/** How far the squared length of a stored vector may be from one. Rounding to int8 changes the length; anything else is damage. */
const FLOAT_TOLERANCE = 1e-3;
const INT8_TOLERANCE = 0.1;

/** Returns the bytes of a unit vector for a collection. */
export function storeVector(collection: string, vector: Float32Array, { scale, code }: Code = encode(vector)): Uint8Array {
  if (collection !== DERIVED_COLLECTION) return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  const bytes = new Uint8Array(SCALE_BYTES + vector.length);
  new DataView(bytes.buffer).setFloat32(0, scale, true);
  bytes.set(new Uint8Array(code.buffer, 0, vector.length), SCALE_BYTES);
  return bytes;
}

/** Returns the unit vector of stored bytes, or undefined if they are damaged: not of this dimension or not of length one. */
export function readVector(bytes: Uint8Array, dimension: number): Float32Array | undefined {
  if (bytes.byteLength === dimension * 4) {
    const vector = new Float32Array(bytes.slice().buffer); // a copy, because the numbers must be aligned
    return Math.abs(squaresOf(vector) - 1) < FLOAT_TOLERANCE ? vector : undefined;
  }
  if (bytes.byteLength !== SCALE_BYTES + dimension) return undefined;
  const vector = new Float32Array(new Int8Array(bytes.buffer, bytes.byteOffset + SCALE_BYTES, dimension));
  const scale = scaleOf(bytes);
  const squares = squaresOf(vector);
  if (!(Math.abs(squares * scale * scale - 1) < INT8_TOLERANCE)) return undefined;
  const length = Math.sqrt(squares);
  for (let i = 0; i < dimension; i++) vector[i]! /= length;
  return vector;
}

/** Returns the cosine of a unit vector with stored bytes, or undefined if they are damaged. */
export function cosineTo(query: Float32Array, stored: Uint8Array): number | undefined {
  const dimension = query.length;
  const isFloat = stored.byteLength === dimension * 4;
  if (!isFloat && stored.byteLength !== SCALE_BYTES + dimension) return undefined;
  const values = isFloat ? floatsOf(stored) : new Int8Array(stored.buffer, stored.byteOffset + SCALE_BYTES, dimension);
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < dimension; i++) {
    const value = values[i]!;
    sum += value * query[i]!;
    squares += value * value;
  }
  if (isFloat) return Math.abs(squares - 1) < FLOAT_TOLERANCE ? sum : undefined;
  const scale = scaleOf(stored);
  return Math.abs(squares * scale * scale - 1) < INT8_TOLERANCE ? sum / Math.sqrt(squares) : undefined;
}

/** Returns the numbers of stored bytes; a copy where they are not aligned. */
function floatsOf(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Float32Array(buffer, byteOffset, byteLength / 4);
}

function scaleOf(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset, SCALE_BYTES).getFloat32(0, true);
}

function squaresOf(vector: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i]! * vector[i]!;
  return sum;
}

/** One vector as int8 with a scale: `vector ≈ scale × code`. */
export interface Code {
  readonly scale: number;
  readonly code: Int8Array;
}

/** Encodes a vector; rounding costs at most half a scale in each component. */
export function encode(vector: Float32Array): Code {
  let largest = 0;
  for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i] as number));
  const scale = Math.fround(largest / 127);
  const code = new Int8Array(strideOf(vector.length));
  for (let i = 0; i < vector.length; i++) code[i] = Math.round((vector[i] as number) / scale);
  return { scale, code };
}

/** Bytes of one code: the dimension filled up with zeros to what the kernel reads at a time. */
export function strideOf(dimension: number): number {
  return Math.ceil(dimension / 32) * 32;
}

/** The newest code of a key, or null if the key was removed, and the number of codes in segments that it overrides. */
export interface DeltaRow {
  readonly code: Code | null;
  readonly stale: number;
}

/** Returns the delta rows of a collection that changed after `change`, by key. */
export function readDelta(tx: SqliteTx, collectionId: number, change = -1): Map<number, DeltaRow> {
  const rows = tx.all<{ key: number; stale: number; scale: number | null; code: Uint8Array | null }>(
    "SELECT key, stale, scale, code FROM vector_delta WHERE collection_id = ? AND change > ?",
    collectionId,
    change,
  );
  return new Map(
    rows.map(({ key, stale, scale, code }) => [
      key,
      {
        stale,
        code: code && { scale: scale as number, code: new Int8Array(code.buffer as ArrayBuffer, code.byteOffset, code.byteLength) },
      },
    ]),
  );
}

/** Writes a delta row. An existing row keeps its number of overridden codes unless `force` is set. */
export function writeDelta(
  tx: SqliteTx,
  collectionId: number,
  change: number,
  key: number,
  { code, stale }: DeltaRow,
  force = false,
): void {
  tx.run(
    `INSERT INTO vector_delta (collection_id, key, change, stale, scale, code) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (collection_id, key) DO UPDATE SET change = excluded.change, scale = excluded.scale, code = excluded.code
     ${force ? ", stale = excluded.stale" : ""}`,
    collectionId,
    key,
    change,
    stale,
    code?.scale ?? null,
    code && new Uint8Array(code.code.buffer, code.code.byteOffset, code.code.byteLength),
  );
}

/** Counts the delta rows with only a new code, and the codes in segments that the others override. */
export function countDelta(tx: SqliteTx, collectionId: number): { fresh: number; overridden: number } {
  return tx.get<{ fresh: number; overridden: number }>(
    "SELECT count(*) FILTER (WHERE stale = 0) AS fresh, coalesce(sum(stale), 0) AS overridden FROM vector_delta WHERE collection_id = ?",
    collectionId,
  )!;
}
