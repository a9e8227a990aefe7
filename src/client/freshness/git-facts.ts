import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gitDataFolder } from "../../files/git-repository.ts";
import { readRegularFile } from "../../files/regular-file.ts";
import { newId } from "../../model/ids.ts";

/**
 * What git found out about a head and another commit. It never changes, because both are named by their ids. `null`: the commit is
 * missing, or git exceeded its limits; git is not asked again for this head.
 */
export type GitFact = boolean | null | Readonly<Record<string, string>>;

/** Facts that earlier answers needed, by head. */
export interface GitFacts {
  /** Returns the known facts about a head, by name. */
  about(tree: string, head: string): ReadonlyMap<string, GitFact>;
  /** Stores facts. A failure to write is ignored: the next process asks git again. */
  add(tree: string, head: string, facts: ReadonlyMap<string, GitFact>): void;
}

/** Heads in memory, facts of one head, bytes of its file, and files in the folder: old ones are removed first. */
const HEADS = 32;
const FACTS = 2_000;
const FILE_BYTES = 1024 * 1024;
/** Renames of one answer that is stored. */
const RENAMES_MAX = 2_000;
const FILES = 64;
/** Bytes of the list of commits at which a shallow clone ends. */
const SHALLOW_BYTES = 1024 * 1024;

/**
 * Opens the facts in a folder, one file per repository and head, which all processes share. Without a folder they stay in memory. A file that
 * is damaged or foreign is ignored and replaced. Two processes that write at once may lose facts of one of them, never mix them.
 */
export function gitFacts(folder?: string): GitFacts {
  const heads = new Map<string, Map<string, GitFact>>();

  function factsOf(tree: string, head: string): { readonly path: string | undefined; readonly facts: Map<string, GitFact> } {
    const name = fileName(tree, head);
    const path = folder === undefined ? undefined : join(folder, name);
    const facts = heads.get(name) ?? (path === undefined ? new Map<string, GitFact>() : readFacts(path));
    heads.delete(name);
    heads.set(name, facts);
    if (heads.size > HEADS) heads.delete(heads.keys().next().value!);
    return { path, facts };
  }

  return {
    about: (tree, head) => factsOf(tree, head).facts,
    add(tree, head, added) {
      const { path, facts } = factsOf(tree, head);
      const others = path === undefined ? [] : readFacts(path); // another process may have added some
      for (const [name, fact] of [...others, ...added]) facts.set(name, fact);
      for (const name of facts.keys()) if (facts.size > FACTS) facts.delete(name);
      if (folder !== undefined && path !== undefined) writeFacts(folder, path, facts);
    },
  };
}

/** Names the file after the repository and the head. The end of a shallow clone belongs to it: a deeper history has other answers. */
function fileName(tree: string, head: string): string {
  const common = gitDataFolder(tree) ?? tree;
  let shallow = "";
  try {
    shallow = readRegularFile(join(common, "shallow"), SHALLOW_BYTES).toString("utf8");
  } catch {
    // a full clone has no such file
  }
  return `${sha256(JSON.stringify([common, shallow, head])).slice(0, 40)}.json`;
}

function readFacts(path: string): Map<string, GitFact> {
  try {
    const [checksum, content = ""] = readRegularFile(path, FILE_BYTES).toString("utf8").split("\n");
    if (checksum !== sha256(content)) return new Map();
    const entries = Object.entries(JSON.parse(content) as Record<string, unknown>);
    return new Map(entries.filter((entry): entry is [string, GitFact] => isFact(entry[1])));
  } catch {
    return new Map(); // missing, or not readable
  }
}

function isFact(value: unknown): value is GitFact {
  if (value === null || typeof value === "boolean") return true;
  return typeof value === "object" && !Array.isArray(value) && Object.values(value).every((path) => typeof path === "string");
}

function writeFacts(folder: string, path: string, facts: ReadonlyMap<string, GitFact>): void {
  const content = JSON.stringify(Object.fromEntries([...facts].filter(([, fact]) => isSmall(fact))));
  const text = `${sha256(content)}\n${content}\n`;
  if (Buffer.byteLength(text) > FILE_BYTES) return;
  const temporary = `${path}.${newId()}.tmp`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
    renameSync(temporary, path);
    removeOldest(folder);
  } catch {
    discard(temporary); // a full or read-only disk
  }
}

/** The renames of a mass move would exceed the file and keep all other answers out of it. */
function isSmall(fact: GitFact): boolean {
  return fact === null || typeof fact !== "object" || Object.keys(fact).length <= RENAMES_MAX;
}

function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // there is no such folder
  }
}

/** Removes the oldest files beyond the limit, and temporary files that a killed process left behind. */
function removeOldest(folder: string): void {
  const names = readdirSync(folder);
  if (names.length <= FILES) return;
  const files = names.flatMap((name) => {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false });
    return stats ? [{ name, at: stats.mtimeMs }] : [];
  });
  for (const { name } of files.sort((a, b) => b.at - a.at).slice(FILES)) rmSync(join(folder, name), { force: true });
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
