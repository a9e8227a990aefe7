import { join } from "node:path";
import { listFiles } from "../list-files.ts";
import { type JsonObject, listOf, objectOf, textOf, timeOf } from "../read-file.ts";
import type { AdoptReader } from "../reader.ts";
import type { SessionEntry } from "../session-digest.ts";
import { type TranscriptFormat, transcriptUnit } from "../transcript-unit.ts";

/** Reads `projects/<folder>/<session>.jsonl`. Transcripts of subagents are in folders below and are left out. */
export const claudeCodeReader: AdoptReader = {
  tool: "claude-code",
  async find({ home, env, redact }, signal) {
    const isTranscript = (name: string, folders: readonly string[]) =>
      folders.length === 1 && name.endsWith(".jsonl") && !name.startsWith("agent-");
    const root = join(claudeFolder(home, env), "projects");
    const files = await listFiles(root, { depth: 1, accepts: isTranscript }, signal);
    const units = files.map((file) => transcriptUnit(file, FORMAT, { sessionId: file.name.slice(0, -".jsonl".length), redact }));
    return { units, problems: [] };
  },
};

export function claudeFolder(home: string, env: Readonly<Record<string, string | undefined>>): string {
  return env.CLAUDE_CONFIG_DIR || join(home, ".claude");
}

const FORMAT: TranscriptFormat = {
  name: "Claude Code 2",
  recognises: ({ type, sessionId, uuid, message }) =>
    (type === "user" || type === "assistant") &&
    typeof sessionId === "string" &&
    typeof uuid === "string" &&
    objectOf(message) !== undefined,
  entriesOf: claudeEntries,
};

/** Tools that write a file, with the field of its path. */
const WRITES: Readonly<Record<string, string>> = {
  Edit: "file_path",
  MultiEdit: "file_path",
  Write: "file_path",
  NotebookEdit: "notebook_path",
};

/** Returns the entries of one line. Lines of subagents, of the program itself and of compactions are left out. */
export function* claudeEntries(line: JsonObject): Generator<SessionEntry> {
  const { type, isSidechain, isMeta, isCompactSummary } = line;
  if ((type !== "user" && type !== "assistant") || isSidechain === true || isMeta === true || isCompactSummary === true) return;
  const content = objectOf(line.message)?.content;
  const at = timeOf(line.timestamp);
  if (at !== undefined) yield { type: "time", at };
  yield { type: "about", folder: textOf(line.cwd), branch: textOf(line.gitBranch), version: textOf(line.version) };
  const blocks = listOf(content);
  const text =
    typeof content === "string" ? content : blocks.flatMap((block) => (block.type === "text" ? (textOf(block.text) ?? []) : [])).join("\n");
  if (type === "user") {
    if (!isInserted(text)) yield { type: "request", text };
    return;
  }
  if (text !== "") yield { type: "answer", text };
  for (const { type, name, input } of blocks) {
    const field = type === "tool_use" && Object.hasOwn(WRITES, String(name)) ? WRITES[String(name)]! : undefined;
    const path = field === undefined ? undefined : textOf(objectOf(input)?.[field]);
    if (path !== undefined) yield { type: "file", path };
  }
}

/** Returns whether the program put this text into a message of the user: output of commands, reminders, notices. */
function isInserted(text: string): boolean {
  return /^\s*(?:<[a-z][\w-]*>|Caveat: |\[Request interrupted)/.test(text);
}
