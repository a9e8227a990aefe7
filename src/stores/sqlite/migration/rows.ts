import { isUtf8 } from "node:buffer";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { CairnError } from "../../../model/errors.ts";
import type { Column, Row, TableShape, Value } from "../../../ports/migration.ts";
import { toMicros } from "./time.ts";

/** The index of each column of a run checkpoint in its envelope. */
export const ENVELOPE = {
  version: 2,
  next_node: 3,
  previous_node: 4,
  attempt: 5,
  step: 7,
  kind: 8,
  note: 9,
  size: 10,
  encoding: 11,
} as const;

/** Expressions for columns that SQLite stores in another form or table. */
const READING: Readonly<Record<string, { from?: string; columns?: Record<string, string> }>> = {
  "project vectors": {
    from: "vectors t JOIN vector_collections s ON s.id = t.collection_id",
    columns: { version_id: "s.version_id", collection: "s.collection" },
  },
  "runs checkpoints": {
    columns: {
      ...Object.fromEntries(Object.entries(ENVELOPE).map(([name, place]) => [name, `json_extract(t.envelope, '$[${place}]')`])),
      data: "CAST(t.data AS BLOB)", // text states are stored as text
    },
  },
};

const BATCH_ROWS = 1_000;
const BATCH_BYTES = 1024 * 1024;

/**
 * Yields the rows of a table as typed values, in bounded batches. SQLite stores any value in any column, so each value is checked: a value
 * of another type, or one that PostgreSQL cannot store, raises `conflict` with the key of its row.
 */
export async function* sqliteRows(connection: DatabaseSync, table: TableShape): AsyncGenerator<Row[]> {
  const { columns } = table;
  const reading = READING[`${table.kind} ${table.name}`] ?? {};
  const list = columns.map((column, index) => `${sourceOf(table, column, reading.columns?.[column.name])} AS c${index}`).join(", ");
  const statement = connection.prepare(`SELECT ${list} FROM ${reading.from ?? `${table.name} t`}`);
  statement.setReadBigInts(true);
  const tags = isTagged(table) ? tagReader(connection) : undefined;
  const dimensions = columns.some(({ type }) => type === "vector") ? dimensionsOf(connection) : undefined;

  let batch: Row[] = [];
  let bytes = 0;
  inUse.add(statement);
  try {
    for (const found of statement.iterate()) {
      const raw: unknown[] = Object.values(found as object);
      const row: Value[] = [];
      for (const [index, column] of columns.entries()) {
        const refuse = (problem: string) => refusal(table, raw, column, problem);
        const value = tags && column.type === "texts" ? tags(raw[index] as bigint, column, refuse) : typedValue(column, raw[index], refuse);
        row.push(value);
        bytes += value instanceof Uint8Array ? value.byteLength : 16;
      }
      if (dimensions) assertDimension(table, row, raw, dimensions);
      batch.push(row);
      if (batch.length >= BATCH_ROWS || bytes >= BATCH_BYTES) {
        yield batch;
        batch = [];
        bytes = 0;
      }
    }
    if (batch.length > 0) yield batch;
  } finally {
    inUse.delete(statement);
  }
}

/** Keeps statements reachable: an iterator does not prevent the garbage collection of its statement, which would end it. */
const inUse = new Set<StatementSync>();

function isTagged(table: TableShape): boolean {
  return table.columns.some(({ name }) => name === "folded_tags");
}

function sourceOf(table: TableShape, column: Column, elsewhere = `t.${column.name}`): string {
  return isTagged(table) && column.type === "texts" ? "t.key" : expression(column, elsewhere);
}

/** Returns an SQL expression that yields text as bytes, and the name of the type for any other value. */
function expression({ type }: Column, source: string): string {
  const asText = type === "text" || type === "texts" || type === "names" || type === "time";
  if (!asText) return source;
  return `CASE typeof(${source}) WHEN 'text' THEN CAST(${source} AS BLOB) WHEN 'null' THEN NULL ELSE 'is ' || typeof(${source}) END`;
}

type Refuse = (problem: string) => CairnError;

const INT4_MAX = 2n ** 31n;

function typedValue({ type, nullable }: Column, raw: unknown, refuse: Refuse): Value {
  if (raw === null || raw === undefined) {
    if (nullable) return null;
    throw refuse("is empty");
  }
  switch (type) {
    case "int4":
    case "int8":
      if (typeof raw !== "bigint") throw refuse("is not a whole number");
      if (type === "int4" && (raw >= INT4_MAX || raw < -INT4_MAX)) throw refuse(`is ${raw}, which exceeds 32 bits`);
      return raw;
    case "bool":
      if (raw !== 0n && raw !== 1n) throw refuse("is neither 0 nor 1");
      return raw === 1n;
    case "float4":
    case "float8": {
      const number = typeof raw === "bigint" ? Number(raw) : raw;
      if (typeof number !== "number") throw refuse("is not a number");
      return type === "float4" ? Math.fround(number) : number;
    }
    case "bytes":
      if (!(raw instanceof Uint8Array)) throw refuse("does not hold bytes");
      return raw;
    case "vector":
      return vectorOf(raw, refuse);
    case "text":
      return textOf(raw, refuse);
    case "time": {
      const text = Buffer.from(textOf(raw, refuse)).toString("utf8");
      const micros = toMicros(text);
      if (micros === undefined) throw refuse(`is ${JSON.stringify(text.slice(0, 40))}, which is not a time`);
      if (micros < EARLIEST) throw refuse(`is ${text}, and PostgreSQL's times begin with the year -4713`);
      return micros;
    }
    case "texts":
      return stringsOf(parseJson(raw, refuse), refuse);
    case "names": {
      const map = parseJson(raw, refuse);
      if (typeof map !== "object" || map === null || Array.isArray(map)) throw refuse("is not a map");
      const entries = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
      return stringsOf(entries.flat(), refuse);
    }
  }
}

/** The earliest time in PostgreSQL, in microseconds since 1970: 24 November 4714 BC. */
const EARLIEST = -211_813_488_000_000_000n + 946_684_800_000_000n;

function textOf(raw: unknown, refuse: Refuse): Uint8Array {
  if (!(raw instanceof Uint8Array)) throw refuse(`${typeof raw === "string" ? raw : "is not text"} where text belongs`);
  if (!isUtf8(raw)) throw refuse("is not valid UTF-8, perhaps half of a character (a lone surrogate)");
  if (raw.includes(0)) throw refuse("holds a NUL character, which PostgreSQL cannot hold");
  return raw;
}

function parseJson(raw: unknown, refuse: Refuse): unknown {
  try {
    return JSON.parse(Buffer.from(textOf(raw, refuse)).toString("utf8"));
  } catch (error) {
    if (error instanceof CairnError) throw error;
    throw refuse("is not valid JSON");
  }
}

function stringsOf(list: unknown, refuse: Refuse): readonly string[] {
  if (!Array.isArray(list) || !list.every((item) => typeof item === "string")) throw refuse("is not a list of texts");
  for (const text of list) {
    if (!text.isWellFormed()) throw refuse("holds half of a character (a lone surrogate), which PostgreSQL cannot hold");
    if (text.includes("\0")) throw refuse("holds a NUL character, which PostgreSQL cannot hold");
  }
  return list;
}

const VECTOR_MAX = 16_000;

function vectorOf(raw: unknown, refuse: Refuse): Uint8Array {
  if (!(raw instanceof Uint8Array) || raw.byteLength === 0 || raw.byteLength % 4 !== 0) throw refuse("is not a vector");
  if (raw.byteLength / 4 > VECTOR_MAX) throw refuse(`has ${raw.byteLength / 4} dimensions; pgvector holds at most ${VECTOR_MAX}`);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  for (let at = 0; at < raw.byteLength; at += 4)
    if (!Number.isFinite(view.getFloat32(at, true))) throw refuse("holds NaN or an infinity, which pgvector refuses");
  return raw;
}

function tagReader(connection: DatabaseSync): (key: bigint, column: Column, refuse: Refuse) => readonly string[] {
  const read = connection.prepare(
    `SELECT ${expression({ name: "tag", type: "text" }, "tag")} AS tags, ${expression({ name: "folded", type: "text" }, "folded")} AS folded_tags
       FROM checkpoint_tags WHERE checkpoint_key = ? ORDER BY position`,
  );
  return (key, column, refuse) =>
    read.all(key).map((row) => Buffer.from(textOf((row as Record<string, unknown>)[column.name], refuse)).toString("utf8"));
}

function dimensionsOf(connection: DatabaseSync): Map<bigint, bigint> {
  const statement = connection.prepare("SELECT version_id AS version, embedding_dimension AS dimension FROM embedding_versions");
  statement.setReadBigInts(true);
  return new Map((statement.all() as unknown as { version: bigint; dimension: bigint }[]).map((row) => [row.version, row.dimension]));
}

function assertDimension(table: TableShape, row: readonly Value[], raw: readonly unknown[], dimensions: ReadonlyMap<bigint, bigint>): void {
  const version = row[table.columns.findIndex(({ name }) => name === "version_id")] as bigint;
  const at = table.columns.findIndex(({ type }) => type === "vector");
  const has = (row[at] as Uint8Array).byteLength / 4;
  const wanted = dimensions.get(version);
  if (wanted !== BigInt(has))
    throw refusal(
      table,
      raw,
      table.columns[at]!,
      wanted === undefined ? "belongs to no embedding version" : `has ${has} dimensions where its version has ${wanted}`,
    );
}

function refusal(table: TableShape, raw: readonly unknown[], column: Column, problem: string): CairnError {
  const key = table.key.map((name) => `${name} ${describeValue(raw[table.columns.findIndex((known) => known.name === name)])}`).join(", ");
  return new CairnError(
    "conflict",
    `The row of ${table.name} with ${key} cannot be migrated: its ${column.name} ${problem}. ${table.damage ? 'Run "cairn doctor --repair" to set it aside, then migrate again.' : "Correct or delete that row, then try again."} Nothing was changed.`,
    { details: { table: table.name, column: column.name, key } },
  );
}

function describeValue(value: unknown): string {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value);
  return value instanceof Uint8Array ? JSON.stringify(text.slice(0, 100)) : text;
}
