import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { loadEngine, releaseClosedConnections } from "../../src/stores/sqlite/driver/engine.ts";

/** A session to write in the format of a tool. The shapes follow files of the real programs; docs/adopt.md has their versions. */
export interface Session {
  readonly id: string;
  readonly folder: string;
  readonly requests: readonly string[];
  readonly answers: readonly string[];
  readonly files: readonly string[];
  readonly branch?: string;
  /** Milliseconds since 1970. */
  readonly startMs: number;
  /** Bytes of tool output, distributed over the turns. */
  readonly outputBytes?: number;
}

const MINUTE_MS = 60_000;

/** Returns a UUID that is the same for the same number. */
export function idOf(number: number): string {
  const hex = createHash("sha256").update(`session ${number}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Returns a session with prose that differs by its number. */
export function sampleSession(number: number, folder: string, outputBytes = 0): Session {
  return {
    id: idOf(number),
    folder,
    requests: [`Fix the ${number}th flaky test of the importer`, "Now update the changelog", "Also check the documentation"],
    answers: [
      `The importer closes its file too late. We decided to close it in a finally block instead of a callback (${number}).`,
      "The changelog has a line about it.",
      `Done: the importer closes its file, test ${number} passes ten times.`,
    ],
    files: [join(folder, "src", "importer.ts"), join(folder, "CHANGELOG.md"), join(folder, "docs", `page-${number}.md`)],
    branch: `fix/importer-${number}`,
    startMs: Date.UTC(2026, 0, 1) + number * 60 * MINUTE_MS,
    outputBytes,
  };
}

/** Tool output of source code, as transcripts mostly contain. */
function outputOf({ outputBytes = 0, requests }: Session, turn: number): string {
  const bytes = Math.floor(outputBytes / requests.length);
  const line = `  ${turn}: const value = await read(\`input-${turn}.json\`); // returns undefined when the file is missing, as before\n`;
  return line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes);
}

const atOf = ({ startMs }: Session, step: number) => new Date(startMs + step * MINUTE_MS).toISOString();

export function claudeLines(session: Session): string[] {
  const { id, folder, requests, answers, files, branch } = session;
  let parent: string | null = null;
  let step = 0;
  const line = (type: string, message: object, more: object = {}) => {
    const uuid = idOf(step + 1_000_000);
    const common = { cwd: folder, sessionId: id, version: "2.1.197", gitBranch: branch };
    const text = JSON.stringify({
      ...{ parentUuid: parent, isSidechain: false, type, message, uuid, timestamp: atOf(session, step++) },
      ...{ userType: "external", entrypoint: "cli", ...common, ...more },
    });
    parent = uuid;
    return text;
  };
  const assistant = (content: object[]) => line("assistant", { id: "msg_1", type: "message", role: "assistant", model: "m", content });
  return [
    JSON.stringify({ type: "queue-operation", operation: "enqueue", timestamp: atOf(session, 0), sessionId: id, content: requests[0] }),
    ...requests.flatMap((text, turn) => [
      line("user", { role: "user", content: text }, { promptId: idOf(turn) }),
      assistant([{ type: "text", text: answers[turn] }]),
      assistant([
        { type: "tool_use", id: `toolu_${turn}`, name: "Edit", input: { file_path: files[turn], old_string: "a", new_string: "b" } },
      ]),
      line("user", { role: "user", content: [{ tool_use_id: `toolu_${turn}`, type: "tool_result", content: outputOf(session, turn) }] }),
    ]),
    JSON.stringify({ type: "last-prompt", lastPrompt: requests.at(-1), sessionId: id }),
  ];
}

export function codexLines(session: Session): string[] {
  const { id, folder, requests, answers, files, branch } = session;
  let ordinal = 0;
  const line = (type: string, payload: object) => JSON.stringify({ timestamp: atOf(session, ordinal), ordinal: ordinal++, type, payload });
  const message = (role: string, type: string, text: string | undefined) =>
    line("response_item", { type: "message", role, content: [{ type, text }] });
  return [
    line("session_meta", {
      ...{
        session_id: id,
        id,
        timestamp: atOf(session, 0),
        cwd: folder,
        originator: "codex_cli_rs",
        cli_version: "0.166.0",
        source: "cli",
      },
      git: { branch, commit_hash: "0".repeat(40) },
    }),
    message("developer", "input_text", "<permissions instructions>none</permissions instructions>"),
    message("user", "input_text", `<environment_context>\n  <cwd>${folder}</cwd>\n</environment_context>`),
    ...requests.flatMap((text, turn) => [
      message("user", "input_text", text),
      message("assistant", "output_text", answers[turn]),
      line("response_item", {
        ...{ type: "custom_tool_call", call_id: `call_${turn}`, name: "apply_patch" },
        input: `*** Begin Patch\n*** Update File: ${files[turn]}\n@@\n-a\n+b\n*** End Patch\n`,
      }),
      line("response_item", { type: "custom_tool_call_output", call_id: `call_${turn}`, output: outputOf(session, turn) }),
    ]),
    line("event_msg", { type: "task_complete", last_agent_message: answers.at(-1) }),
  ];
}

export function geminiLines(session: Session): string[] {
  const { id, folder, requests, answers, files } = session;
  let step = 0;
  const at = () => atOf(session, step++);
  const header = {
    sessionId: id,
    projectHash: createHash("sha256").update(folder).digest("hex"),
    startTime: at(),
    lastUpdated: at(),
    kind: "main",
  };
  return [
    JSON.stringify(header),
    ...requests.flatMap((text, turn) => [
      JSON.stringify({ id: `u${turn}`, timestamp: at(), type: "user", content: [{ text }] }),
      JSON.stringify({
        ...{ id: `g${turn}`, timestamp: at(), type: "gemini", content: answers[turn], model: "m" },
        toolCalls: [{ id: `t${turn}`, name: "replace", args: { file_path: files[turn] }, result: [{ text: outputOf(session, turn) }] }],
      }),
      JSON.stringify({ $set: { lastUpdated: at() } }),
    ]),
  ];
}

export function writeClaude(home: string, session: Session): string {
  const entry = session.folder.replace(/[^a-zA-Z0-9]/g, "-");
  return write(join(home, ".claude", "projects", entry, `${session.id}.jsonl`), claudeLines(session));
}

export function writeCodex(home: string, session: Session): string {
  const at = atOf(session, 0);
  const name = `rollout-${at.slice(0, 19).replaceAll(":", "-")}-${session.id}.jsonl`;
  return write(join(home, ".codex", "sessions", ...at.slice(0, 10).split("-"), name), codexLines(session));
}

export function writeGemini(home: string, session: Session): string {
  const project = join(
    home,
    ".gemini",
    "tmp",
    session.folder
      .replace(/[^a-z0-9]+/gi, "-")
      .toLowerCase()
      .replace(/^-|-$/g, ""),
  );
  write(join(project, ".project_root"), [session.folder]);
  return write(
    join(project, "chats", `session-${atOf(session, 0).slice(0, 16).replaceAll(":", "-")}-${session.id.slice(0, 8)}.jsonl`),
    geminiLines(session),
  );
}

/** Writes `opencode.db` with the columns that opencode 1.18 has and Cairn reads, in WAL mode. */
export async function writeOpencode(home: string, sessions: readonly Session[]): Promise<string> {
  const path = join(home, ".local", "share", "opencode", "opencode.db");
  mkdirSync(dirname(path), { recursive: true });
  const { DatabaseSync } = await loadEngine();
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
      title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
      time_updated integer NOT NULL, data text NOT NULL);
    CREATE INDEX IF NOT EXISTS part_message ON part (message_id); CREATE INDEX IF NOT EXISTS message_session ON message (session_id); BEGIN`);
  for (const session of sessions) {
    const { id, folder, requests, answers, files, startMs } = session;
    const insert = (table: string, ...values: (string | number | null)[]) =>
      database.prepare(`INSERT INTO ${table} VALUES (${values.map(() => "?").join(", ")})`).run(...values);
    insert("session", `ses_${id}`, "p", null, "slug", folder, "Title", "1.18.34", startMs, startMs + MINUTE_MS);
    const message = (key: string, role: string, atMs: number, parts: object[]) => {
      insert("message", key, `ses_${id}`, atMs, atMs, JSON.stringify({ role, time: { created: atMs } }));
      for (const [index, part] of parts.entries()) insert("part", `${key}_${index}`, key, `ses_${id}`, atMs, atMs, JSON.stringify(part));
    };
    for (const [turn, text] of requests.entries()) {
      const atMs = startMs + turn * 2 * MINUTE_MS;
      message(`msg_${id}_${turn}a`, "user", atMs, [{ type: "text", text }]);
      message(`msg_${id}_${turn}b`, "assistant", atMs + MINUTE_MS, [
        { type: "step-start" },
        { type: "text", text: answers[turn] },
        { type: "tool", tool: "edit", state: { status: "completed", input: { filePath: files[turn] }, output: outputOf(session, turn) } },
      ]);
    }
  }
  database.exec("COMMIT");
  database.close();
  await releaseClosedConnections();
  return path;
}

function write(path: string, lines: readonly string[]): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${lines.join("\n")}\n`);
  return path;
}
