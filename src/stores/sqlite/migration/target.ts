import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { CairnError } from "../../../model/errors.ts";
import {
  type Column,
  type Counters,
  namedValues,
  type RollbackTarget,
  type Row,
  type TableShape,
  type Value,
} from "../../../ports/migration.ts";
import { recordTerms } from "../../../text/terms.ts";
import { openSqlite } from "../driver/driver.ts";
import { loadEngine } from "../driver/engine.ts";
import { FILL_MIRROR } from "../projects/derived-parts.ts";
import { vectorCodes } from "./codes.ts";
import { dropFence } from "./fence.ts";
import { acquireMigrationLock } from "./lock.ts";
import { sqliteRows } from "./rows.ts";
import { archivePath, emptyWal, placeCopy, type SqliteMigrationOptions, sqliteCounters } from "./source.ts";
import { fromMicros } from "./time.ts";

/** Returns a SQLite file as the target of a migration from PostgreSQL. It is built under another name and copied into place when complete. */
export function sqliteMigrationTarget({ path, schema, shape, trace = () => {} }: SqliteMigrationOptions): RollbackTarget {
  const made = `${path}.building`;
  let connection: DatabaseSync | undefined;
  let release: (() => void) | undefined;

  async function connect(): Promise<DatabaseSync> {
    const { DatabaseSync } = await loadEngine();
    connection ??= new DatabaseSync(made, { timeout: 5_000 });
    return connection;
  }
  function disconnect(): void {
    connection?.close();
    connection = undefined;
  }
  function clear(): void {
    disconnect();
    for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(made + end, { force: true });
  }

  return {
    where: path,

    async lock() {
      release ??= await acquireMigrationLock(path);
    },

    async state() {
      if (existsSync(path)) return "occupied";
      return existsSync(made) ? "ours" : "absent";
    },

    async check() {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    },

    async fill(_migrationId, feed) {
      if (existsSync(path)) throw new CairnError("conflict", `The file ${path} already exists. Rename it first. Nothing was changed.`);
      clear();
      (await openSqlite({ path: made, schema })).close();
      trace("target made");
      const db = await connect();
      // An incomplete file is discarded, so durability does not matter yet.
      db.exec("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -64000");
      db.exec("BEGIN");
      const triggers = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all() as { name: string; sql: string }[];
      for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
      for (const { name } of shape.tables) db.exec(`DELETE FROM ${name}`);
      db.exec("COMMIT; BEGIN");
      const writers = new Map<string, (row: Row) => void>();
      const counters = await feed(async (table, rows) => {
        let write = writers.get(table.name);
        if (!write) {
          write = rowWriter(db, table, path);
          writers.set(table.name, write);
        }
        for (const row of rows) write(row);
        db.exec("COMMIT; BEGIN"); // no rollback is needed; committing limits the memory use
        trace(`filled ${table.name}`);
      });
      setCounters(db, counters);
      if (shape.kind === "project") db.exec(FILL_MIRROR);
      vectorCodes(db, shape)?.rebuildCodes();
      for (const { sql } of triggers) db.exec(sql);
      const broken = db.prepare("PRAGMA foreign_key_check").all();
      if (broken.length > 0) throw new CairnError("conflict", `${broken.length} rows refer to missing rows. Nothing was changed.`);
      db.exec("COMMIT");
      trace("target filled");
    },

    async restoreArchive(archivedBy, counters) {
      clear();
      placeCopy(archivePath(path, archivedBy), made, trace);
      const db = await connect();
      await dropFence(db, made);
      setCounters(db, counters);
      trace("target filled");
    },

    async *rows(table) {
      yield* sqliteRows(await connect(), table);
    },

    async counters() {
      return sqliteCounters(await connect(), shape);
    },

    async problems() {
      const db = await connect();
      const found: string[] = (db.prepare("PRAGMA integrity_check").all() as { integrity_check: string }[])
        .map(({ integrity_check }) => integrity_check)
        .filter((result) => result !== "ok");
      for (const { name, fullText } of shape.tables) {
        if (!fullText) continue;
        const index = ftsTable(name);
        const missing = db.prepare(`SELECT count(*) AS count FROM ${name} t WHERE t.key NOT IN (SELECT id FROM ${index}_docsize)`).get();
        const { count } = missing as { count: number };
        if (count > 0) found.push(`${count} rows of ${name} are missing in the full-text index.`);
      }
      return [...found, ...(vectorCodes(db, shape)?.problems() ?? [])];
    },

    async open() {
      if (!existsSync(path)) {
        await emptyWal(await connect(), made);
        disconnect();
        // A copy, because this process may still have the other file open: SQLite's locks do not cover two names of one file.
        placeCopy(made, path, trace);
      }
      trace("placed");
      clear();
    },

    async discard() {
      clear();
      trace("discarded");
    },

    async close() {
      disconnect();
      release?.();
      release = undefined;
    },
  };
}

/** Raises the counters, never lowers them, so that no number is reused. */
function setCounters(db: DatabaseSync, counters: Counters): void {
  for (const [table, last] of Object.entries(counters)) {
    const { changes } = db.prepare("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?").run(BigInt(last), table);
    if (Number(changes) === 0) db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(table, BigInt(last));
  }
}

const FULL_TEXT_TABLE: Readonly<Record<string, string>> = {
  checkpoints: "checkpoint_fts",
  knowledge: "knowledge_fts",
};

function ftsTable(table: string): string {
  const found = FULL_TEXT_TABLE[table];
  if (!found) throw new CairnError("internal", `There is no full-text index of ${table}.`);
  return found;
}

/** Returns a function that inserts rows of one table with their tags and full-text rows. */
function rowWriter(db: DatabaseSync, table: TableShape, path: string): (row: Row) => void {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  if (table.kind === "project" && table.name === "vectors") return vectorRowWriter(db, at);
  if (table.kind === "runs" && table.name === "checkpoints") return runCheckpointWriter(db, at);
  const tagged = at("folded_tags") !== -1;
  const stored = table.columns.filter(({ type }) => !(tagged && type === "texts"));
  const insert = db.prepare(
    `INSERT INTO ${table.name} (${stored.map(({ name }) => name).join(", ")}) VALUES (${stored.map(placeholder).join(", ")})`,
  );
  const insertTag = tagged && db.prepare("INSERT INTO checkpoint_tags (checkpoint_key, position, tag, folded) VALUES (?, ?, ?, ?)");
  const insertTerms = table.fullText && db.prepare(`INSERT INTO ${ftsTable(table.name)} (rowid, terms) VALUES (?, ?)`);
  const named = namedValues(table);
  return (row) => {
    const { value, text } = named(row);
    insert.run(...stored.map((column) => bindValue(column, value(column.name), () => `${table.name} ${nameOf(table, value)} of ${path}`)));
    const key = value("key") as bigint;
    if (insertTag) {
      const folded = value("folded_tags") as readonly string[];
      for (const [position, tag] of (value("tags") as readonly string[]).entries())
        insertTag.run(key, position, tag, folded[position] ?? "");
    }
    if (insertTerms && table.fullText) insertTerms.run(key, recordTerms(table.fullText({ value, text })).join(" "));
  };
}

/** Inserts vectors: those of one version form one vector collection. */
function vectorRowWriter(db: DatabaseSync, at: (name: string) => number): (row: Row) => void {
  const insert = db.prepare("INSERT INTO vectors (collection_id, key, vector) VALUES (?, ?, ?)");
  const collections = new Map<bigint, bigint>();
  return (row) => {
    const version = row[at("version_id")] as bigint;
    const vector = row[at("vector")] as Uint8Array;
    let collectionId = collections.get(version);
    if (collectionId === undefined) {
      const made = db
        .prepare("INSERT INTO vector_collections (collection, version_id, dimension) VALUES (CAST(? AS TEXT), ?, ?)")
        .run(row[at("collection")] as Uint8Array, version, vector.byteLength / 4);
      collectionId = BigInt(made.lastInsertRowid);
      collections.set(version, collectionId);
    }
    insert.run(collectionId, row[at("key")] as bigint, vector);
  };
}

/** Inserts run checkpoints: most of their columns are in the envelope, a JSON array. */
function runCheckpointWriter(db: DatabaseSync, at: (name: string) => number): (row: Row) => void {
  const insert = (data: string) =>
    db.prepare(
      `INSERT INTO checkpoints (run_id, node_id, sequence, timestamp, branch, envelope, data) VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, CAST(? AS TEXT), ?, ${data})`,
    );
  const [asBytes, asText] = [insert("?"), insert("CAST(? AS TEXT)")];
  return (row) => {
    const value = (name: string) => row[at(name)]!;
    const plain = (name: string) => {
      const found = value(name);
      return found instanceof Uint8Array ? Buffer.from(found).toString("utf8") : typeof found === "bigint" ? Number(found) : found;
    };
    const timestamp = fromMicros(value("timestamp") as bigint)!;
    const envelope = ["sequence", "timestamp", "version", "next_node", "previous_node", "attempt", "branch", ...LATER].map((name) =>
      name === "timestamp" ? timestamp : plain(name),
    );
    (plain("encoding") === "text" ? asText : asBytes).run(
      value("run_id") as Uint8Array,
      value("node_id") as Uint8Array,
      value("sequence") as bigint,
      timestamp,
      value("branch") as Uint8Array,
      JSON.stringify(envelope),
      value("data") as Uint8Array,
    );
  };
}

const LATER = ["step", "kind", "note", "size", "encoding"];

/** Text is bound as bytes to preserve them exactly, and floats as text, because SQLite binds 1e-16 as 0. */
function placeholder({ type }: Column): string {
  if (type === "float4" || type === "float8") return "CAST(? AS REAL)";
  return type === "text" ? "CAST(? AS TEXT)" : "?";
}

function bindValue({ name, type }: Column, value: Value, row: () => string): null | bigint | number | string | Uint8Array {
  if (value === null) return null;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : value;
  if (type === "time") {
    const text = fromMicros(value as bigint);
    if (text === undefined)
      throw new CairnError("conflict", `The row ${row()} cannot be migrated: its ${name} is outside the time range of JavaScript.`);
    return text;
  }
  if (type === "texts") return JSON.stringify(value);
  if (type === "names") {
    const flat = value as readonly string[];
    return JSON.stringify(Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])));
  }
  return value as bigint | number | Uint8Array;
}

function nameOf({ key }: TableShape, value: (name: string) => Value): string {
  return key
    .map((name) => {
      const part = value(name);
      return part instanceof Uint8Array ? JSON.stringify(Buffer.from(part).toString("utf8").slice(0, 100)) : String(part);
    })
    .join(", ");
}
