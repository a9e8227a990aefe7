import { createHash, type Hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { TableFacts } from "../../../model/backup.ts";
import type { RecordedSchema } from "../../../model/schema.ts";

/** Selects every table with rows of its own: the tables of a full-text index count, the virtual table itself does not. */
const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'
  AND name NOT LIKE 'sqlite_stat%' ORDER BY name`;

export function tableNames(connection: DatabaseSync): string[] {
  return (connection.prepare(TABLES).all() as { name: string }[]).map(({ name }) => name);
}

export function countRows(connection: DatabaseSync, table: string): number {
  return Number((connection.prepare(`SELECT count(*) AS rows FROM ${quoteIdentifier(table)}`).get() as { rows: number }).rows);
}

/** Reads every row of every table. Two databases with the same facts hold the same values of the same types. */
export function tableFacts(connection: DatabaseSync): TableFacts[] {
  return tableNames(connection).map((name) => {
    // Without an index: one that covers all columns would return another order.
    const statement = connection.prepare(`SELECT * FROM ${quoteIdentifier(name)} NOT INDEXED`);
    statement.setReadBigInts(true);
    const digest = rowDigest();
    let rows = 0;
    for (const row of statement.iterate()) {
      digest.add(Object.values(row as Record<string, unknown>));
      rows++;
    }
    return { name, rows, sha256: digest.end() };
  });
}

/** Returns the recorded schema versions; empty for a foreign file. */
export function recordedSchemas(connection: DatabaseSync): RecordedSchema[] {
  if (!tableNames(connection).includes("schema_migrations")) return [];
  const sql = "SELECT migration_id AS version, migration_name AS name, checksum FROM schema_migrations ORDER BY migration_id";
  return (connection.prepare(sql).all() as unknown as RecordedSchema[]).map((row) => ({ ...row }));
}

const CHUNK_BYTES = 64 * 1024;

/** Hashes each value with its type and length, so that no two different rows have the same bytes. */
function rowDigest(): { add(row: readonly unknown[]): void; end(): string } {
  const hash: Hash = createHash("sha256");
  let pending: Buffer[] = [];
  let bytes = 0;
  const put = (tag: string, data: Buffer) => {
    const head = Buffer.from(`${tag}${data.length}:`);
    pending.push(head, data);
    bytes += head.length + data.length;
    if (bytes > CHUNK_BYTES) flush();
  };
  const flush = () => {
    hash.update(Buffer.concat(pending, bytes));
    pending = [];
    bytes = 0;
  };
  return {
    add(row) {
      put("r", Buffer.from(String(row.length)));
      for (const value of row) put(...encodeValue(value));
    },
    end() {
      flush();
      return hash.digest("hex");
    },
  };
}

function encodeValue(value: unknown): [string, Buffer] {
  if (value === null || value === undefined) return ["n", Buffer.alloc(0)];
  if (typeof value === "bigint") return ["i", Buffer.from(String(value))];
  if (typeof value === "string") return ["t", Buffer.from(value, "utf8")];
  if (value instanceof Uint8Array) return ["b", Buffer.from(value.buffer, value.byteOffset, value.byteLength)];
  const real = Buffer.alloc(8);
  real.writeDoubleLE(Number(value));
  return ["f", real];
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
