import { setImmediate as nextTurn } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import type { TableDigest } from "../model/migration.ts";
import {
  type ColumnType,
  type DatabaseShape,
  type MigrationSource,
  type MigrationTarget,
  namedValues,
  type Row,
  type TableShape,
  type Value,
} from "../ports/migration.ts";
import { digester } from "./digest.ts";

export interface Watch {
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of rows that were processed. */
  readonly rows: (count: number, what: string) => void;
}

/** Reads every row and returns the digest of each table. Raises the first error of `each`. */
export async function scan(
  side: Pick<MigrationSource | MigrationTarget, "rows">,
  shape: DatabaseShape,
  watch: Watch,
  each?: (table: TableShape, rows: readonly Row[]) => Promise<void> | void,
): Promise<TableDigest[]> {
  const found: TableDigest[] = [];
  for (const table of shape.tables) {
    const digest = digester(table);
    for await (const rows of side.rows(table)) {
      watch.signal?.throwIfAborted();
      digest.add(rows);
      await each?.(table, rows);
      watch.rows(rows.length, table.name);
      await nextTurn(); // reading SQLite is synchronous
    }
    found.push(digest.result());
  }
  return found;
}

/** Describes the tables that differ. */
export function differences(expected: readonly TableDigest[], found: readonly TableDigest[]): string[] {
  const byName = new Map(found.map((table) => [table.table, table]));
  return expected.flatMap(({ table, rows, digest }) => {
    const other = byName.get(table);
    if (!other) return [`${table} is missing`];
    if (other.rows !== rows) return [`${table} has ${other.rows} rows instead of ${rows}`];
    return other.digest === digest ? [] : [`${table} has ${rows} rows, but different content`];
  });
}

/** Raises `conflict` for a damaged record. A repair quarantines it, and the migration copies the quarantine. */
export function assertSound(table: TableShape, rows: readonly Row[]): void {
  const { damage } = table;
  if (!damage) return;
  const named = namedValues(table);
  for (const row of rows) {
    const reason = damage(named(row));
    if (reason !== undefined)
      throw new CairnError(
        "conflict",
        `The row of ${table.name} with ${keyOf(table, row)} is damaged: ${reason}. ${REPAIR} Nothing was changed.`,
        { details: { table: table.name, reason } },
      );
  }
}

/** Advice for a row that cannot be migrated. */
const REPAIR = 'Run "cairn doctor --repair" to quarantine it, then migrate again.';

const MAX_MS = 8_640_000_000_000_000n;

/** Raises `conflict` for values of PostgreSQL that SQLite or JavaScript cannot represent. */
export function assertFitsSqlite(table: TableShape, rows: readonly Row[]): void {
  for (const [index, { name, type }] of table.columns.entries()) {
    const check = type === "vector" && table.name !== "vectors" ? undefined : PROBLEMS[type];
    if (!check) continue;
    for (const row of rows) {
      const value = row[index]!;
      const problem = value === null ? undefined : check(value);
      if (problem)
        throw new CairnError(
          "conflict",
          `The row of ${table.name} with ${keyOf(table, row)} cannot be migrated: its ${name} ${problem}. ${table.damage ? REPAIR : "Correct or delete that row, then try again."} Nothing was changed.`,
          {
            details: { table: table.name, column: name },
          },
        );
    }
  }
}

const PROBLEMS: Partial<Record<ColumnType, (value: Value) => string | undefined>> = {
  time: (value) => timeProblem(value as bigint),
  vector: (value) => vectorProblem(value as Uint8Array),
  float4: (value) => numberProblem(value as number),
  float8: (value) => numberProblem(value as number),
};

function numberProblem(value: number): string | undefined {
  if (Number.isNaN(value)) return "is not a number, which SQLite cannot store";
  return Object.is(value, -0) ? "is a negative zero, which SQLite cannot store" : undefined;
}

function timeProblem(micros: bigint): string | undefined {
  return micros / 1000n > MAX_MS || micros / 1000n < -MAX_MS ? "is outside the time range of JavaScript" : undefined;
}

function vectorProblem(bytes: Uint8Array): string | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let squares = 0;
  for (let at = 0; at < bytes.byteLength; at += 4) squares += view.getFloat32(at, true) ** 2;
  return Math.abs(squares - 1) < 1e-3 ? undefined : "is not a unit vector";
}

function keyOf({ key, columns }: TableShape, row: Row): string {
  return key.map((name) => `${name} ${format(row[columns.findIndex((column) => column.name === name)]!)}`).join(", ");
}

function format(value: Value): string {
  return value instanceof Uint8Array ? JSON.stringify(Buffer.from(value).toString("utf8").slice(0, 100)) : String(value);
}
