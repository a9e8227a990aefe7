import { closeSync, fstatSync, readSync } from "node:fs";
import { openRegularFile } from "../../files/regular-file.ts";
import { parseJson } from "../../text/untrusted.ts";

/** The last requests, reply and files of a session. */
export interface SessionFacts {
  /** The last requests of the user, oldest first. */
  readonly requests: readonly string[];
  /** The last text of the agent. */
  readonly answer: string;
  /** Files that were written, the most recent last. */
  readonly files: readonly string[];
  readonly branch?: string | undefined;
}

/** Bytes that are read from the end of a transcript: long sessions have tens of megabytes. */
const TAIL_BYTES = 8 * 1024 * 1024;
const REQUESTS = 5;
const FILES = 30;

export function readTranscript(path: string): SessionFacts {
  return sessionFacts(lastLines(path));
}

function lastLines(path: string): string[] {
  const file = openRegularFile(path);
  try {
    const { size } = fstatSync(file);
    const start = Math.max(0, size - TAIL_BYTES);
    const bytes = Buffer.alloc(size - start);
    const read = readSync(file, bytes, 0, bytes.length, start);
    const lines = bytes.toString("utf8", 0, read).split("\n");
    return start > 0 ? lines.slice(1) : lines; // the first line is incomplete
  } finally {
    closeSync(file);
  }
}

interface Entry {
  readonly type?: unknown;
  readonly isMeta?: unknown;
  readonly isSidechain?: unknown;
  readonly isCompactSummary?: unknown;
  readonly gitBranch?: unknown;
  readonly message?: { readonly content?: unknown };
  readonly payload?: { readonly type?: unknown; readonly role?: unknown; readonly content?: unknown };
  readonly content?: unknown;
  readonly toolCalls?: unknown;
}

/** Unknown lines are skipped: the format belongs to another program and changes. */
export function sessionFacts(lines: readonly string[]): SessionFacts {
  const requests: string[] = [];
  const files = new Set<string>();
  let answer = "";
  let branch: string | undefined;
  for (const line of lines) {
    const entry = parseEntry(line);
    if (!entry || entry.isSidechain === true) continue;
    if (typeof entry.gitBranch === "string" && entry.gitBranch) branch = entry.gitBranch;
    const { role, content, written } = messageOf(entry);
    const blocks = Array.isArray(content) ? content.filter((block) => typeof block === "object" && block !== null) : [];
    const words = (
      typeof content === "string"
        ? content
        : blocks.flatMap(({ type, text }) => (TEXT_BLOCKS.has(type) && typeof text === "string" ? [text] : [])).join("\n")
    ).trim();
    if (role === "user" && entry.isMeta !== true && entry.isCompactSummary !== true && words && !words.startsWith("<"))
      requests.push(words);
    if (role === "assistant") {
      if (words) answer = words;
      for (const path of written) {
        files.delete(path);
        files.add(path);
      }
      for (const { type, name, input } of blocks) {
        const path =
          type === "tool_use" && /^(Edit|MultiEdit|Write|NotebookEdit)$/.test(String(name))
            ? (input?.file_path ?? input?.notebook_path)
            : undefined;
        if (typeof path !== "string") continue;
        files.delete(path); // the most recent last
        files.add(path);
      }
    }
  }
  return { requests: requests.slice(-REQUESTS), answer, files: [...files].slice(-FILES), branch };
}

/** The types of blocks with text: of Claude Code and Gemini CLI, and of Codex. */
const TEXT_BLOCKS = new Set<unknown>(["text", "input_text", "output_text", undefined]);

/** Returns the message of a line: Claude Code nests it in `message`, Codex in `payload`, and Gemini CLI has it at the top. */
function messageOf({ type, message, payload, content, toolCalls }: Entry): { role: unknown; content: unknown; written: readonly string[] } {
  if (type === "response_item" && payload?.type === "message") return { role: payload.role, content: payload.content, written: [] };
  if (message !== undefined) return { role: type, content: message.content, written: [] };
  const calls = Array.isArray(toolCalls) ? toolCalls : [];
  const written = calls.flatMap((call) => {
    const path = /^(write_file|replace)$/.test(String(call?.name)) ? call?.args?.file_path : undefined;
    return typeof path === "string" ? [path] : [];
  });
  return { role: type === "gemini" ? "assistant" : type, content, written };
}

function parseEntry(line: string): Entry | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return parseJson(line) as Entry;
  } catch {
    return undefined;
  }
}
