import { join } from "node:path";
import type { Redact } from "../../../text/redact.ts";
import { parseJson } from "../../../text/untrusted.ts";
import { databasePath, databaseState, openCopy } from "../database-copy.ts";
import { type ForeignDatabase, hasColumns } from "../foreign-database.ts";
import { ADOPT_LIMITS } from "../limits.ts";
import { listFiles } from "../list-files.ts";
import { type JsonObject, objectOf, textOf, timeOf } from "../read-file.ts";
import type { AdoptHost, AdoptItem, AdoptReader, ProblemItem, SessionItem } from "../reader.ts";
import { type SessionEntry, sessionDigest } from "../session-digest.ts";

/** Reads the tables `session`, `message` and `part` of `opencode.db`. Sessions of subagents have a parent and are left out. */
export const opencodeReader: AdoptReader = {
  tool: "opencode",
  async find(host, signal) {
    const { home, env } = host;
    const folder = join(env.XDG_DATA_HOME || join(home, ".local", "share"), "opencode");
    const path = await databasePath(folder, "opencode.db");
    const state = path === undefined ? undefined : await databaseState(path);
    if (path === undefined || !state) return { units: [], problems: await earlierLayout(folder, signal) };
    return { units: [{ path, ...state, read: (given) => readSessions(path, host, given) }], problems: [] };
  },
};

/** Reports the layout of earlier versions, which kept each message in a file of its own. */
async function earlierLayout(folder: string, signal: AbortSignal): Promise<ProblemItem[]> {
  const root = join(folder, "storage", "session");
  const files = await listFiles(root, { depth: 1, accepts: (name) => name.endsWith(".json"), limit: 1 }, signal);
  const problem = "has the layout of versions without opencode.db, which is not known here";
  return files.length > 0 ? [{ type: "problem", path: root, problem }] : [];
}

const TABLES: Readonly<Record<string, readonly string[]>> = {
  session: ["id", "parent_id", "directory", "version", "time_created", "time_updated"],
  message: ["id", "session_id", "time_created", "data"],
  part: ["id", "message_id", "data"],
};

async function* readSessions(path: string, host: AdoptHost, signal: AbortSignal): AsyncGenerator<AdoptItem> {
  const database = await openCopy(path, host, signal);
  try {
    if (!Object.entries(TABLES).every(([table, columns]) => hasColumns(database, table, columns))) {
      yield { type: "problem", path, problem: "has an unknown format; known is that of opencode 1.18" };
      return;
    }
    const sessions = database.rows(
      "SELECT id, directory, version, time_created, time_updated FROM session WHERE parent_id IS NULL ORDER BY id LIMIT ?",
      ADOPT_LIMITS.files,
    );
    for (const session of sessions) {
      signal.throwIfAborted();
      const item = readSession(database, session, host.redact);
      if (item) yield item;
    }
  } finally {
    database.close();
  }
}

function readSession(database: ForeignDatabase, session: JsonObject, redact: Redact): SessionItem | undefined {
  const id = textOf(session.id);
  if (id === undefined) return undefined;
  const digest = sessionDigest(redact);
  digest.add({ type: "about", folder: textOf(session.directory), version: textOf(session.version) });
  const parts = database.rows(
    `SELECT message.data AS message, message.time_created AS time_created, part.data AS part FROM message
      JOIN part ON part.message_id = message.id
      WHERE message.session_id = ? AND length(part.data) <= ? AND length(message.data) <= ? ORDER BY message.time_created, message.id, part.id`,
    id,
    ADOPT_LIMITS.lineBytes,
    ADOPT_LIMITS.lineBytes,
  );
  for (const row of parts) for (const entry of opencodeEntries(row)) digest.add(entry);
  return { type: "session", sessionId: id, digest: digest.value() };
}

/** Tools that write a file. */
const WRITES = new Set(["write", "edit", "multiedit"]);

/** Returns the entries of one part with its message. */
export function* opencodeEntries({ message, part, time_created }: JsonObject): Generator<SessionEntry> {
  const { role } = jsonOf(message) ?? {};
  const { type, text, tool, state, synthetic } = jsonOf(part) ?? {};
  const at = timeOf(time_created);
  if (at !== undefined) yield { type: "time", at };
  if (type === "text" && synthetic !== true && typeof text === "string") {
    if (role === "user") yield { type: "request", text };
    if (role === "assistant") yield { type: "answer", text };
  }
  const input = objectOf(objectOf(state)?.input);
  const path = type === "tool" && WRITES.has(String(tool)) ? textOf(input?.filePath) : undefined;
  if (path !== undefined) yield { type: "file", path };
}

function jsonOf(value: unknown): JsonObject | undefined {
  try {
    return typeof value === "string" ? objectOf(parseJson(value, { values: ADOPT_LIMITS.lineValues })) : undefined;
  } catch {
    return undefined; // a row that is no JSON has no entries
  }
}
