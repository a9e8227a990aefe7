import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readItems } from "../../../src/client/adopt/read-items.ts";
import type { AdoptHost, AdoptItem, AdoptReader, AdoptUnit } from "../../../src/client/adopt/reader.ts";
import { loadEngine, releaseClosedConnections } from "../../../src/stores/sqlite/driver/engine.ts";
import { openForeignDatabase } from "../../../src/stores/sqlite/driver/foreign-database.ts";
import { redactSecrets } from "../../../src/text/redact.ts";

export interface Machine extends AdoptHost {
  /** A repository of the user. */
  readonly project: string;
  clear(): void;
}

/** A home directory with a repository, and nothing else. */
export function machine(): Machine {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "cairn-adopt-")));
  const [home, scratch, project] = [join(root, "home"), join(root, "scratch"), join(root, "home", "app")];
  mkdirSync(scratch, { recursive: true });
  mkdirSync(join(project, ".git"), { recursive: true });
  return {
    ...{ home, scratch, project, folder: project, env: {}, redact: redactSecrets, openDatabase: openForeignDatabase },
    clear: () => rmSync(root, { recursive: true, force: true }),
  };
}

export function writeFile(path: string, content: string | Buffer): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

/** Writes `claude-mem.db` with the tables of claude-mem 13 that Cairn reads. */
export async function writeClaudeMem(
  home: string,
  { project, sessionId, title }: Readonly<Record<"project" | "sessionId" | "title", string>>,
): Promise<string> {
  const path = join(home, ".claude-mem", "claude-mem.db");
  mkdirSync(dirname(path), { recursive: true });
  const { DatabaseSync } = await loadEngine();
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE, project TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT, type TEXT NOT NULL,
      title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT, investigated TEXT,
      learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL)`);
  database
    .prepare("INSERT OR IGNORE INTO sdk_sessions (content_session_id, memory_session_id, project) VALUES (?, ?, ?)")
    .run(sessionId, `m-${sessionId}`, project);
  database
    .prepare(
      "INSERT INTO observations (memory_session_id, project, type, title, subtitle, facts, narrative, created_at, created_at_epoch) VALUES (?, ?, 'bugfix', ?, 'Sub', ?, 'It waited for a lock.', '', ?)",
    )
    .run(`m-${sessionId}`, project, title, JSON.stringify(["fact one", 2, "fact two"]), Date.UTC(2026, 0, 5));
  database
    .prepare(
      "INSERT INTO session_summaries (memory_session_id, project, request, learned, completed, created_at, created_at_epoch) VALUES (?, ?, ?, 'L', 'C', '', ?)",
    )
    .run(`m-${sessionId}`, project, `Summary of ${title}`, Date.UTC(2026, 0, 6));
  database.close();
  await releaseClosedConnections();
  return path;
}

export const SIGNAL = new AbortController().signal;

/** Returns everything that a reader finds and reads, as a run does. */
export async function readAll(reader: AdoptReader, host: AdoptHost): Promise<{ units: readonly AdoptUnit[]; items: AdoptItem[] }> {
  const { units, problems } = await reader.find(host, SIGNAL);
  const items: AdoptItem[] = [...problems];
  for (const unit of units) for await (const item of readItems(unit, SIGNAL, () => {})) items.push(item);
  return { units, items };
}

/** Returns the content and the times of all files below a folder. */
export function photograph(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mtimeMs, mode } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: 0, mode: 0 };
      return [
        path,
        `${mode} ${entry.isDirectory() ? "" : mtimeMs} ${entry.isFile() ? createHash("sha256").update(readFileSync(path)).digest("hex") : ""}`,
      ];
    }),
  );
}
