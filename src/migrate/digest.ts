import { createHash } from "node:crypto";
import type { TableDigest } from "../model/migration.ts";
import type { Row, TableShape, Value } from "../ports/migration.ts";

const LANES = 8;

/** Counts rows and adds their hashes, so that tables with the same rows in any order have the same digest. */
export interface Digester {
  add(rows: readonly Row[]): void;
  result(): TableDigest;
}

/**
 * Returns a digester. Each row is encoded by type and length, so that the encoding is unambiguous, and hashed with SHA-256. The
 * hashes are added in eight lanes of 32 bits: unlike XOR, a sum does not cancel duplicate rows.
 */
export function digester(table: TableShape): Digester {
  const sums = new Uint32Array(LANES);
  const width = table.columns.length;
  let rows = 0;
  return {
    add(batch) {
      for (const row of batch) {
        const hash = createHash("sha256");
        for (let i = 0; i < width; i++) write(hash, row[i]!);
        const bytes = hash.digest();
        for (let lane = 0; lane < LANES; lane++) sums[lane] = sums[lane]! + bytes.readUInt32LE(lane * 4);
        rows++;
      }
    },
    result: () => ({ table: table.name, rows, digest: Buffer.from(sums.buffer).toString("hex") }),
  };
}

interface Sink {
  update(data: string | Uint8Array): unknown;
}

function write(sink: Sink, value: Value): void {
  if (value === null) sink.update("n;");
  else if (typeof value === "bigint") sink.update(`i${value};`);
  else if (typeof value === "boolean") sink.update(value ? "t;" : "f;");
  else if (typeof value === "number") {
    const bytes = Buffer.alloc(9, "d");
    bytes.writeDoubleBE(value, 1); // a negative zero and every bit of a NaN count
    sink.update(bytes);
  } else if (value instanceof Uint8Array) {
    sink.update(`b${value.byteLength}:`);
    sink.update(value);
  } else {
    sink.update(`l${value.length}:`);
    for (const text of value) write(sink, Buffer.from(text, "utf8"));
  }
}
