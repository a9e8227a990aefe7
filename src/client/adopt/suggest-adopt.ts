import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { ledgerFolder } from "./ledger.ts";
import { claudeFolder } from "./readers/claude-code.ts";
import { codexFolder } from "./readers/codex.ts";

export interface SuggestOptions {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly dataDir: string;
  /** The transcript of the current session, which does not count. */
  readonly transcript?: string | undefined;
}

/** Entries of the folders of tools that are looked at: a session start must not take long. */
const ENTRIES = 200;

/**
 * Returns one line that suggests `cairn adopt`, if nothing was ever adopted on this machine and a tool has sessions or notes. Looks at names
 * of files only.
 */
export async function suggestAdopt({ home, env, dataDir, transcript }: SuggestOptions): Promise<string | undefined> {
  if (await hasFile(ledgerFolder(dataDir), 0, (name) => name.endsWith(".jsonl"))) return undefined;
  const isOther = (name: string, path: string) => name.endsWith(".jsonl") && path !== transcript;
  const places: [string, () => Promise<boolean>][] = [
    ["Claude Code", () => hasFile(join(claudeFolder(home, env), "projects"), 1, isOther)],
    ["Codex", () => hasFile(join(codexFolder(home, env), "sessions"), 3, isOther)],
    ["Gemini CLI", () => hasFile(join(env.GEMINI_CLI_HOME || home, ".gemini", "tmp"), 2, (name) => name.startsWith("session-"))],
    ["opencode", () => hasFile(join(env.XDG_DATA_HOME || join(home, ".local", "share"), "opencode"), 0, (name) => name === "opencode.db")],
    ["claude-mem", () => hasFile(env.CLAUDE_MEM_DATA_DIR || join(home, ".claude-mem"), 0, (name) => name === "claude-mem.db")],
    ["Basic Memory", () => hasFile(env.BASIC_MEMORY_HOME || join(home, "basic-memory"), 1, (name) => name.endsWith(".md"))],
  ];
  const found: string[] = [];
  for (const [tool, isPresent] of places) if (await isPresent()) found.push(tool);
  if (found.length === 0) return undefined;
  return `${found.join(", ")} left sessions or notes on this machine. See: cairn adopt --dry-run`;
}

/** Returns whether a folder has such a file, at most `depth` folders below it. Looks at a bounded number of entries. */
async function hasFile(
  folder: string,
  depth: number,
  accepts: (name: string, path: string) => boolean,
  left = { entries: ENTRIES },
): Promise<boolean> {
  try {
    for await (const entry of await opendir(folder)) {
      if (--left.entries < 0) return false;
      const path = join(folder, entry.name);
      if (entry.isFile() && accepts(entry.name, path)) return true;
      if (entry.isDirectory() && depth > 0 && (await hasFile(path, depth - 1, accepts, left))) return true;
    }
  } catch {
    // The tool was never used, or its folder may not be read.
  }
  return false;
}
