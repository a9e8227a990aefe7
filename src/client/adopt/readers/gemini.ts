import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import type { Redact } from "../../../text/redact.ts";
import { ADOPT_LIMITS } from "../limits.ts";
import { type ListedFile, listFiles } from "../list-files.ts";
import { type JsonObject, listOf, objectOf, readDocument, readIndex, readText, textOf, timeOf } from "../read-file.ts";
import type { AdoptHost, AdoptItem, AdoptReader, AdoptUnit, ProblemItem } from "../reader.ts";
import { type SessionEntry, sessionDigest } from "../session-digest.ts";
import { type TranscriptFormat, transcriptUnit } from "../transcript-unit.ts";

const POINTER_BYTES = 16 * 1024;

/**
 * Reads `tmp/<project>/chats/session-<time>-<id>.jsonl`, and `.json` of earlier versions. The file `.project_root` next to `chats` names the
 * project. A folder of earlier versions is named by the hash of the project's path, which is compared with the known folders.
 */
export const geminiReader: AdoptReader = {
  tool: "gemini",
  async find(host, signal) {
    const root = geminiTemporary(host);
    const accepts = (name: string, folders: readonly string[]) =>
      folders.length === 2 && folders[1] === "chats" && /^session-.+\.jsonl?$/.test(name);
    const enters = (name: string, folders: readonly string[]) => folders.length === 0 || name === "chats";
    const files = await listFiles(root, { depth: 2, accepts, enters }, signal);
    const folders = await geminiFolders(host);
    const units: AdoptUnit[] = [];
    const problems: ProblemItem[] = [];
    for (const file of files) {
      const project = join(file.path, "..", "..");
      const folder = await folders(project);
      if (folder === undefined) problems.push({ type: "problem", path: file.path, problem: "its project folder is unknown" });
      else if (file.name.endsWith(".jsonl"))
        units.push(transcriptUnit(file, FORMAT, { sessionId: sessionIdOf(file.name), folder, redact: host.redact }));
      else units.push(documentUnit(file, folder, host.redact));
    }
    return { units, problems };
  },
};

export function geminiTemporary({ home, env }: Pick<AdoptHost, "home" | "env">): string {
  return join(env.GEMINI_CLI_HOME || home, ".gemini", "tmp");
}

/** Returns a function that finds the folder of a project by its entry in `tmp`. */
export async function geminiFolders({ home, env, folder }: AdoptHost): Promise<(entry: string) => Promise<string | undefined>> {
  const registry = await readIndex(join(env.GEMINI_CLI_HOME || home, ".gemini"), "projects.json");
  const known = [folder, ...Object.keys(objectOf(registry?.projects) ?? {})];
  const byHash = new Map(known.map((path) => [createHash("sha256").update(path).digest("hex"), path]));
  const found = new Map<string, string | undefined>();
  return async (entry) => {
    if (!found.has(entry)) {
      const named = await readText(join(entry, ".project_root"), POINTER_BYTES).catch(() => undefined);
      found.set(entry, named?.trim() || byHash.get(basename(entry)));
    }
    return found.get(entry);
  };
}

/** Returns the name without its extension: a session keeps it when it is converted from JSON to lines. */
function sessionIdOf(name: string): string {
  return name.replace(/\.jsonl?$/, "");
}

const FORMAT: TranscriptFormat = { name: "Gemini CLI 0.61", recognises: isHeader, entriesOf: geminiEntries };

function isHeader({ sessionId, projectHash, startTime }: JsonObject): boolean {
  return typeof sessionId === "string" && typeof projectHash === "string" && typeof startTime === "string";
}

/** Tools that write a file. */
const WRITES = new Set(["write_file", "replace"]);

/** Returns the entries of one line: the header, a message, or an update that contains messages. Other updates are left out. */
export function* geminiEntries(line: JsonObject): Generator<SessionEntry> {
  for (const value of [line.startTime, line.timestamp]) {
    const at = timeOf(value);
    if (at !== undefined) yield { type: "time", at };
  }
  for (const message of listOf(objectOf(line.$set)?.messages)) yield* geminiEntries(message);
  const { type, content, toolCalls } = line;
  const text =
    textOf(content) ??
    listOf(content)
      .flatMap(({ text }) => textOf(text) ?? [])
      .join("\n");
  if (type === "user" && text !== "" && !/^\s*<[a-z][\w-]*>/.test(text)) yield { type: "request", text };
  if (type !== "gemini") return;
  if (text !== "") yield { type: "answer", text };
  for (const { name, args } of listOf(toolCalls)) {
    const path = WRITES.has(String(name)) ? textOf(objectOf(args)?.file_path) : undefined;
    if (path !== undefined) yield { type: "file", path };
  }
}

/** Returns a file that is one JSON document, as earlier versions wrote it. */
function documentUnit(file: ListedFile, folder: string, redact: Redact): AdoptUnit {
  return {
    path: file.path,
    bytes: file.bytes,
    fingerprint: file.fingerprint,
    async *read(): AsyncGenerator<AdoptItem> {
      const document = await readDocument(file.path, ADOPT_LIMITS.documentBytes);
      if (!isHeader(document) || !Array.isArray(document.messages)) {
        yield { type: "problem", path: file.path, problem: `has an unknown format; known is that of ${FORMAT.name}` };
        return;
      }
      const digest = sessionDigest(redact);
      digest.add({ type: "about", folder });
      for (const line of [{ startTime: document.startTime }, ...listOf(document.messages)])
        for (const entry of geminiEntries(line)) digest.add(entry);
      yield { type: "session", sessionId: sessionIdOf(file.name), digest: digest.value() };
    },
  };
}
