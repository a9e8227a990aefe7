import { join } from "node:path";
import { type ListedFile, listFiles } from "./list-files.ts";
import { jsonLines, objectOf, readIndex, textOf } from "./read-file.ts";
import type { AdoptHost } from "./reader.ts";
import { claudeFolder } from "./readers/claude-code.ts";

/** Lines of a transcript within which its working directory must be named. */
const HEAD_LINES = 50;

/** Finds the folders of projects by the names that Claude Code and its plugins use. */
export interface ClaudeFolders {
  /** By the name of a folder in `projects`, which is the path with other characters replaced. */
  byEntry(entry: string): Promise<string | undefined>;
  /** By the id of a session whose transcript exists. */
  bySession(sessionId: string): Promise<string | undefined>;
  /** By the last part of the path, if exactly one known folder has it. */
  byName(name: string): string | undefined;
  readonly all: readonly string[];
}

/** Reads the list of projects in `.claude.json` and lists the transcripts. Only the keys of `projects` are used. */
export async function claudeFolders({ home, env, folder }: AdoptHost, signal: AbortSignal): Promise<ClaudeFolders> {
  const settings = await readIndex(env.CLAUDE_CONFIG_DIR || home, ".claude.json");
  const all = [...new Set([...Object.keys(objectOf(settings?.projects) ?? {}), folder])];
  const byEntry = new Map(all.map((path) => [entryOf(path), path]));
  const accepts = (name: string, folders: readonly string[]) => folders.length === 1 && name.endsWith(".jsonl");
  const files = await listFiles(join(claudeFolder(home, env), "projects"), { depth: 1, accepts }, signal);
  const transcripts = new Map(files.map((file) => [file.name.slice(0, -".jsonl".length), file]));
  const heads = new Map<string, Promise<string | undefined>>();
  const headOf = (file: ListedFile | undefined) => {
    if (!file) return undefined;
    if (!heads.has(file.path)) heads.set(file.path, workingDirectory(file.path, signal));
    return heads.get(file.path);
  };
  return {
    all,
    async byEntry(entry) {
      const known = byEntry.get(entry);
      if (known !== undefined) return known;
      const found = await headOf(files.find((file) => file.path.split(/[\\/]/).at(-2) === entry));
      return found !== undefined && entryOf(found) === entry ? found : undefined;
    },
    bySession: async (sessionId) => headOf(transcripts.get(sessionId)),
    byName(name) {
      const matching = all.filter((path) => path.split(/[\\/]/).at(-1) === name);
      return matching.length === 1 ? matching[0] : undefined;
    },
  };
}

/** Returns the name that Claude Code gives to the folder of a project. */
function entryOf(path: string): string {
  return path.replace(/[^a-zA-Z0-9]/g, "-");
}

async function workingDirectory(path: string, signal: AbortSignal): Promise<string | undefined> {
  let lines = 0;
  try {
    for await (const { cwd } of jsonLines(path, signal)) {
      if (textOf(cwd) !== undefined) return textOf(cwd);
      if (++lines >= HEAD_LINES) break;
    }
  } catch {
    signal.throwIfAborted(); // a transcript that cannot be read names no folder
  }
  return undefined;
}
