import type { Column, Row, TableShape, Value } from "../../../ports/migration.ts";

/** Microseconds from 1970 to 2000, the epoch of PostgreSQL. */
const EPOCH = 946_684_800_000_000n;
const TEXT_OID = 25;
const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");

/** The header of a binary COPY: a signature, no flags, no extension. */
export const COPY_HEADER = Buffer.concat([SIGNATURE, Buffer.alloc(8)]);
/** The trailer of a binary COPY. */
export const COPY_TRAILER = Buffer.from([0xff, 0xff]);

/** Encodes rows for binary COPY. `extra` appends one text column to each row. */
export function encodeRows(columns: readonly Column[], rows: readonly Row[], extra?: (row: Row) => string): Buffer {
  const parts: Uint8Array[] = [];
  for (const row of rows) {
    const count = Buffer.alloc(2);
    count.writeInt16BE(columns.length + (extra ? 1 : 0));
    parts.push(count);
    for (const [index, column] of columns.entries()) field(parts, encodeValue(column, row[index]!));
    if (extra) field(parts, Buffer.from(extra(row), "utf8"));
  }
  return Buffer.concat(parts);
}

function field(parts: Uint8Array[], bytes: Uint8Array | null): void {
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes?.byteLength ?? -1);
  parts.push(length);
  if (bytes) parts.push(bytes);
}

function encodeValue({ type }: Column, value: Value): Uint8Array | null {
  if (value === null) return null;
  switch (type) {
    case "text":
    case "bytes":
      return value as Uint8Array;
    case "int4": {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32BE(Number(value));
      return bytes;
    }
    case "int8":
      return bigint(value as bigint);
    case "bool":
      return Buffer.from([value ? 1 : 0]);
    case "time":
      return bigint((value as bigint) - EPOCH);
    case "float4": {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatBE(value as number);
      return bytes;
    }
    case "float8": {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value as number);
      return bytes;
    }
    case "vector": {
      const floats = value as Uint8Array;
      const bytes = Buffer.alloc(4 + floats.byteLength);
      bytes.writeInt16BE(floats.byteLength / 4);
      bytes.set(floats, 4);
      bytes.subarray(4).swap32();
      return bytes;
    }
    case "texts":
      return encodeList(value as readonly string[]);
    case "names": {
      const flat = value as readonly string[];
      const map = Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]));
      return Buffer.concat([Buffer.from([1]), Buffer.from(JSON.stringify(map), "utf8")]); // jsonb, version 1
    }
  }
}

function bigint(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function encodeList(list: readonly string[]): Buffer {
  const head = Buffer.alloc(list.length === 0 ? 12 : 20);
  head.writeInt32BE(list.length === 0 ? 0 : 1, 0);
  head.writeInt32BE(TEXT_OID, 8);
  if (list.length > 0) {
    head.writeInt32BE(list.length, 12);
    head.writeInt32BE(1, 16);
  }
  const parts: Uint8Array[] = [head];
  for (const text of list) field(parts, Buffer.from(text, "utf8"));
  return Buffer.concat(parts);
}

/** Returns a decoder of binary COPY that takes the stream in pieces. */
export function rowDecoder(table: TableShape): { push(piece: Uint8Array): Row[]; end(): void } {
  const { columns } = table;
  let pending: Buffer = Buffer.alloc(0);
  let wanted = COPY_HEADER.length;
  let started = false;
  let ended = false;
  let pieces: Uint8Array[] = [];
  let pieceBytes = 0;

  return {
    push(piece) {
      pieces.push(piece);
      pieceBytes += piece.byteLength;
      // A large row arrives in many pieces, which are joined once it is complete.
      if (pending.length + pieceBytes < wanted) return [];
      pending = Buffer.concat([pending, ...pieces]);
      pieces = [];
      pieceBytes = 0;
      if (!started) {
        if (!pending.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error("The server did not send binary data.");
        pending = pending.subarray(COPY_HEADER.length);
        started = true;
      }
      const rows: Row[] = [];
      for (;;) {
        const length = rowLength(pending, columns.length);
        if (length === "end") {
          ended = true;
          break;
        }
        if (length > pending.length) {
          wanted = length;
          break;
        }
        rows.push(decodeRow(pending, columns));
        pending = pending.subarray(length);
      }
      return rows;
    },
    end() {
      if (!ended) throw new Error(`The rows of ${table.name} ended early.`);
    },
  };
}

/** Returns a lower bound of the next row's length in bytes; exact once that many are available. */
function rowLength(bytes: Buffer, columns: number): number | "end" {
  if (bytes.length < 2) return 2;
  const count = bytes.readInt16BE(0);
  if (count === -1) return "end";
  if (count !== columns) throw new Error(`A row has ${count} columns instead of ${columns}.`);
  let at = 2;
  for (let i = 0; i < count; i++) {
    if (bytes.length < at + 4) return at + 4;
    at += 4 + Math.max(0, bytes.readInt32BE(at));
  }
  return at;
}

function decodeRow(bytes: Buffer, columns: readonly Column[]): Row {
  let at = 2;
  return columns.map((column) => {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (length === -1) return null;
    const value = decodeValue(column, bytes.subarray(at, at + length));
    at += length;
    return value;
  });
}

function decodeValue({ type, name }: Column, bytes: Buffer): Value {
  switch (type) {
    case "text":
    case "bytes":
      return Buffer.from(bytes); // a copy, so that the large piece can be freed
    case "int4":
      return BigInt(bytes.readInt32BE());
    case "int8":
      return bytes.readBigInt64BE();
    case "bool":
      return bytes[0] === 1;
    case "time":
      return bytes.readBigInt64BE() + EPOCH;
    case "float4":
      return bytes.readFloatBE();
    case "float8":
      return bytes.readDoubleBE();
    case "vector":
      return Buffer.from(bytes.subarray(4)).swap32();
    case "texts":
      return decodeList(bytes, name);
    case "names": {
      const map = JSON.parse(bytes.subarray(1).toString("utf8")) as Record<string, string>;
      return Object.entries(map)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flat();
    }
  }
}

function decodeList(bytes: Buffer, name: string): readonly string[] {
  if (bytes.readInt32BE(0) === 0) return [];
  if (bytes.readInt32BE(0) !== 1) throw new Error(`The list ${name} has more than one dimension.`);
  const list: string[] = [];
  let at = 20;
  for (let i = bytes.readInt32BE(12); i > 0; i--) {
    const length = bytes.readInt32BE(at);
    at += 4;
    list.push(bytes.toString("utf8", at, at + length));
    at += length;
  }
  return list;
}
