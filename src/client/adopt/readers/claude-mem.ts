import { join } from "node:path";
import { parseJson } from "../../../text/untrusted.ts";
import { type ClaudeFolders, claudeFolders } from "../claude-folders.ts";
import { databasePath, databaseState, openCopy } from "../database-copy.ts";
import { hasColumns } from "../foreign-database.ts";
import { ADOPT_LIMITS } from "../limits.ts";
import { type JsonObject, textOf, timeOf } from "../read-file.ts";
import type { AdoptHost, AdoptItem, AdoptReader, NoteItem } from "../reader.ts";

/** Reads the tables `observations` and `session_summaries` of `claude-mem.db`. */
export const claudeMemReader: AdoptReader = {
  tool: "claude-mem",
  async find(host) {
    const path = await databasePath(host.env.CLAUDE_MEM_DATA_DIR || join(host.home, ".claude-mem"), "claude-mem.db");
    const state = path === undefined ? undefined : await databaseState(path);
    if (path === undefined || !state) return { units: [], problems: [] };
    return { units: [{ path, ...state, read: (signal) => readNotes(path, host, signal) }], problems: [] };
  },
};

const TABLES: Readonly<Record<string, readonly string[]>> = {
  sdk_sessions: ["content_session_id", "memory_session_id"],
  observations: ["id", "memory_session_id", "project", "text", "type", "title", "subtitle", "facts", "narrative", "created_at_epoch"],
  session_summaries: [
    "id",
    "memory_session_id",
    "project",
    "request",
    "investigated",
    "learned",
    "completed",
    "next_steps",
    "created_at_epoch",
  ],
};

/** Columns of both tables that are text. Each is cut: a hostile value could have a gigabyte. */
const TEXTS = {
  observations: ["type", "title", "subtitle", "narrative", "text", "facts"],
  session_summaries: ["request", "investigated", "learned", "completed", "next_steps"],
} as const;

async function* readNotes(path: string, host: AdoptHost, signal: AbortSignal): AsyncGenerator<AdoptItem> {
  const database = await openCopy(path, host, signal);
  try {
    if (!Object.entries(TABLES).every(([table, columns]) => hasColumns(database, table, columns))) {
      yield { type: "problem", path, problem: "has an unknown format; known is that of claude-mem 13" };
      return;
    }
    const folders = await claudeFolders(host, signal);
    for (const [table, toNote] of [
      ["observations", observationNote],
      ["session_summaries", summaryNote],
    ] as const) {
      const texts = TEXTS[table].map((column) => `substr(record.${column}, 1, ${ADOPT_LIMITS.textChars}) AS ${column}`);
      const rows = database.rows(
        `SELECT record.id AS id, record.project AS project, record.created_at_epoch AS created_at_epoch, ${texts.join(", ")},
          (SELECT content_session_id FROM sdk_sessions WHERE memory_session_id = record.memory_session_id LIMIT 1) AS session
          FROM ${table} AS record ORDER BY record.id`,
      );
      for (const row of rows) {
        signal.throwIfAborted();
        const note = toNote(row, await folderOf(row, folders));
        if (note) yield note;
      }
    }
  } finally {
    database.close();
  }
}

/** Returns the folder of a record: that of its session's transcript, or the only known folder with the project's name. */
async function folderOf({ session, project }: JsonObject, folders: ClaudeFolders): Promise<string | undefined> {
  const bySession = textOf(session) === undefined ? undefined : await folders.bySession(textOf(session)!);
  return bySession ?? folders.byName(textOf(project)?.split("/").at(-1) ?? "");
}

/** Makes the note of an observation: its title, and what was observed. */
export function observationNote(row: JsonObject, folder: string | undefined): NoteItem | undefined {
  const facts = listIn(row.facts).map((fact) => `- ${fact}`);
  const text = [textOf(row.subtitle), textOf(row.narrative) ?? textOf(row.text), facts.join("\n")].filter(Boolean).join("\n\n");
  const title = textOf(row.title) ?? text.split("\n")[0];
  return noteOf("observation", row, folder, title, text);
}

/** Makes the note of a session's summary: the request, and what came of it. */
export function summaryNote(row: JsonObject, folder: string | undefined): NoteItem | undefined {
  const parts = { Investigated: row.investigated, Learned: row.learned, Completed: row.completed, "Next steps": row.next_steps };
  const text = Object.entries(parts).flatMap(([name, value]) => (textOf(value) ? [`${name}: ${value}`] : []));
  return noteOf("summary", row, folder, textOf(row.request), text.join("\n\n"));
}

function noteOf(kind: string, row: JsonObject, folder: string | undefined, title: string | undefined, text: string): NoteItem | undefined {
  const createdAt = timeOf(milliseconds(row.created_at_epoch));
  if (title === undefined || text === "" || createdAt === undefined) return undefined;
  const project = folder === undefined ? textOf(row.project) : undefined;
  const category = [project, textOf(row.type) ?? kind].filter(Boolean).join(" ");
  return { type: "note", key: `${kind} ${row.id}`, folder, title, text, category, createdAt };
}

/** Returns an epoch in milliseconds; early versions stored seconds. */
function milliseconds(epoch: unknown): number | undefined {
  if (typeof epoch !== "number") return undefined;
  return epoch < 100_000_000_000 ? epoch * 1_000 : epoch;
}

function listIn(value: unknown): string[] {
  try {
    const list = typeof value === "string" ? parseJson(value) : undefined;
    return Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
  } catch {
    return []; // a list that is no JSON has no facts
  }
}
