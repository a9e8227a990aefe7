import { realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import { type ClaudeFolders, claudeFolders } from "../claude-folders.ts";
import { type ListedFile, listedFile, listFiles } from "../list-files.ts";
import { markdownUnit } from "../markdown-notes.ts";
import type { AdoptHost, AdoptReader, AdoptUnit, ProblemItem } from "../reader.ts";
import { claudeFolder } from "./claude-code.ts";
import { codexFolder } from "./codex.ts";
import { geminiFolders, geminiTemporary } from "./gemini.ts";

const NAME = "MEMORY.md";

/**
 * Reads the notes that agents keep in Markdown: the memory folders of Claude Code and Gemini CLI, `memories/MEMORY.md` of Codex, and
 * `MEMORY.md` in the root of known projects.
 */
export const memoryMdReader: AdoptReader = {
  tool: "memory-md",
  async find(host, signal) {
    const folders = await claudeFolders(host, signal);
    const parts = [
      await claudeNotes(host, folders, signal),
      await geminiNotes(host, signal),
      await sharedNote(codexFolder(host.home, host.env)),
      ...(await Promise.all(folders.all.map((folder) => rootNote(folder)))),
    ];
    const units = new Map(parts.flatMap((part) => part.units).map((unit) => [unit.path, unit]));
    return { units: [...units.values()].sort((a, b) => (a.path < b.path ? -1 : 1)), problems: parts.flatMap((part) => part.problems) };
  },
};

interface Notes {
  readonly units: readonly AdoptUnit[];
  readonly problems: readonly ProblemItem[];
}

const isNote = (name: string, folders: readonly string[]) => folders.length === 2 && folders[1] === "memory" && /\.md$/i.test(name);
const entersMemory = (name: string, folders: readonly string[]) => folders.length === 0 || name === "memory";

function claudeNotes({ home, env }: AdoptHost, folders: ClaudeFolders, signal: AbortSignal): Promise<Notes> {
  return notesBelow(join(claudeFolder(home, env), "projects"), (project) => folders.byEntry(basename(project)), signal);
}

async function geminiNotes(host: AdoptHost, signal: AbortSignal): Promise<Notes> {
  return notesBelow(geminiTemporary(host), await geminiFolders(host), signal);
}

/** Lists `<project>/memory/*.md` below a root; `findFolder` returns the project folder of an entry. */
async function notesBelow(root: string, findFolder: (project: string) => Promise<string | undefined>, signal: AbortSignal): Promise<Notes> {
  const units: AdoptUnit[] = [];
  const problems: ProblemItem[] = [];
  for (const file of await listFiles(root, { depth: 2, accepts: isNote, enters: entersMemory }, signal)) {
    const folder = await findFolder(join(file.path, "..", ".."));
    if (folder === undefined) problems.push({ type: "problem", path: file.path, problem: "its project folder is unknown" });
    else units.push(unitOf(file, folder));
  }
  return { units, problems };
}

async function sharedNote(codex: string): Promise<Notes> {
  const file = await noteIn(join(codex, "memories"));
  return { units: file ? [unitOf(file, undefined)] : [], problems: [] };
}

async function rootNote(folder: string): Promise<Notes> {
  const file = await noteIn(folder);
  return { units: file ? [unitOf(file, folder)] : [], problems: [] };
}

async function noteIn(folder: string): Promise<ListedFile | undefined> {
  const real = await realpath(folder).catch(() => undefined);
  return real === undefined ? undefined : listedFile(join(real, NAME), NAME);
}

function unitOf(file: ListedFile, folder: string | undefined): AdoptUnit {
  return markdownUnit(file, { folder, category: "memory" });
}
