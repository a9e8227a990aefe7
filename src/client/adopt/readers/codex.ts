import { join } from "node:path";
import { parseJson } from "../../../text/untrusted.ts";
import { listFiles } from "../list-files.ts";
import { type JsonObject, listOf, objectOf, textOf, timeOf } from "../read-file.ts";
import type { AdoptReader } from "../reader.ts";
import type { SessionEntry } from "../session-digest.ts";
import { type TranscriptFormat, transcriptUnit } from "../transcript-unit.ts";

/** Reads `sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl` and the same files in `archived_sessions`. */
export const codexReader: AdoptReader = {
  tool: "codex",
  async find({ home, env, redact }, signal) {
    const root = codexFolder(home, env);
    const isRollout = (name: string) => name.startsWith("rollout-") && name.endsWith(".jsonl");
    const enters = (name: string, folders: readonly string[]) => folders.length > 0 || name === "sessions" || name === "archived_sessions";
    const files = await listFiles(root, { depth: 4, accepts: (name, folders) => folders.length > 0 && isRollout(name), enters }, signal);
    const units = files.map((file) => transcriptUnit(file, FORMAT, { sessionId: sessionIdOf(file.name), redact }));
    return { units, problems: [] };
  },
};

export function codexFolder(home: string, env: Readonly<Record<string, string | undefined>>): string {
  return env.CODEX_HOME || join(home, ".codex");
}

/** Returns the id at the end of `rollout-2026-11-17T04-15-56-<uuid>.jsonl`, or the whole name. */
function sessionIdOf(name: string): string {
  return /-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/.exec(name)?.[1] ?? name.slice(0, -".jsonl".length);
}

const FORMAT: TranscriptFormat = {
  name: "Codex 0.166",
  recognises: ({ type, payload }) =>
    type === "session_meta" && typeof objectOf(payload)?.cwd === "string" && typeof objectOf(payload)?.id === "string",
  entriesOf: codexEntries,
};

/** Returns the entries of one line. Messages of the developer and of the program itself are left out. */
export function* codexEntries(line: JsonObject): Generator<SessionEntry> {
  const payload = objectOf(line.payload);
  if (!payload) return;
  const at = timeOf(line.timestamp);
  if (at !== undefined) yield { type: "time", at };
  if (line.type === "session_meta") {
    const branch = textOf(objectOf(payload.git)?.branch);
    yield { type: "about", folder: textOf(payload.cwd), branch, version: textOf(payload.cli_version) };
  } else if (line.type === "response_item") yield* itemEntries(payload);
  else if (line.type === "event_msg") yield* changedFiles(objectOf(payload.item));
}

/** Returns the files of a completed change: the keys of `changes` are paths. */
function* changedFiles(item: JsonObject | undefined): Generator<SessionEntry> {
  if (item?.type !== "FileChange" || item.status !== "completed") return;
  for (const [path, change] of Object.entries(objectOf(item.changes) ?? {}))
    if (objectOf(change)?.type !== "delete") yield { type: "file", path };
}

function* itemEntries(item: JsonObject): Generator<SessionEntry> {
  if (item.type === "message") {
    const text = listOf(item.content)
      .flatMap(({ text }) => textOf(text) ?? [])
      .join("\n");
    if (item.role === "assistant" && text !== "") yield { type: "answer", text };
    if (item.role === "user" && text !== "" && !isInserted(text)) yield { type: "request", text };
  } else if (item.type === "custom_tool_call" && item.name === "apply_patch") {
    yield* patchedFiles(textOf(item.input));
  } else if (item.type === "function_call" || item.type === "local_shell_call") {
    yield* patchedFiles(commandOf(item));
  }
}

/** Returns the command of a shell call, which may contain a patch. */
function commandOf({ arguments: given, action }: JsonObject): string | undefined {
  try {
    const input = typeof given === "string" ? objectOf(parseJson(given)) : objectOf(action);
    const command = input?.cmd ?? input?.command ?? input?.input;
    return Array.isArray(command) ? command.filter((word) => typeof word === "string").join(" ") : textOf(command);
  } catch {
    return undefined; // arguments that are no JSON name no file
  }
}

/** Returns the files of an `apply_patch` text. */
function* patchedFiles(patch: string | undefined): Generator<SessionEntry> {
  if (!patch?.includes("*** Begin Patch")) return;
  for (const line of patch.split("\n")) {
    const path = /^\*\*\* (?:Add|Update) File: (\S.*)$/.exec(line)?.[1] ?? /^\*\*\* Move to: (\S.*)$/.exec(line)?.[1];
    if (path !== undefined) yield { type: "file", path: path.trim() };
  }
}

/** Returns whether the program put this text into a message of the user: the environment, instructions of files, notices. */
function isInserted(text: string): boolean {
  return /^\s*(?:<[a-z][\w-]*>|# AGENTS\.md instructions)/.test(text);
}
