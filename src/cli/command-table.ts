import { readFileSync } from "node:fs";
import { builtFile } from "../files/built-file.ts";
import type { CommandEntry } from "./command.ts";

/** The command table in dist/. `scripts/build.mjs` writes it, so that help needs no schema. */
const TABLE_FILE = "cli/command-table.json";

let loaded: readonly CommandEntry[] | undefined;

/** Returns the entries of all commands: from the built file, or in tests from the commands themselves. */
export async function commandTable(): Promise<readonly CommandEntry[]> {
  loaded ??= import.meta.url.endsWith(".ts")
    ? (await import("./commands.ts")).commands
    : (JSON.parse(readFileSync(builtFile(TABLE_FILE), "utf8")) as readonly CommandEntry[]);
  return loaded;
}

export interface Found {
  readonly command: CommandEntry | undefined;
  /** The recognised words: the path of a command, or a common prefix of several. */
  readonly path: readonly string[];
  readonly rest: readonly string[];
}

/** Finds the command that the arguments start with. The longest path wins, so `cairn backup` and `cairn backup list` can both exist. */
export function findCommand(table: readonly CommandEntry[], args: readonly string[]): Found {
  let found: Found = { command: undefined, path: [], rest: args };
  for (let length = 1; length <= args.length; length++) {
    const path = args.slice(0, length);
    const under = commandsUnder(table, path);
    if (under.length === 0) break;
    const command = under.find((candidate) => candidate.path.length === length);
    if (command || found.command === undefined) found = { command, path, rest: args.slice(length) };
  }
  return found;
}

export function commandsUnder(table: readonly CommandEntry[], path: readonly string[]): readonly CommandEntry[] {
  return table.filter((command) => path.every((word, index) => command.path[index] === word));
}

/** Returns the words that may follow a path. */
export function wordsAfter(table: readonly CommandEntry[], path: readonly string[]): readonly string[] {
  return [...new Set(commandsUnder(table, path).flatMap((command) => command.path[path.length] ?? []))];
}
