import { decorateOperations } from "../client/decorate-operations.ts";
import { operations } from "../operations/list.ts";
import { indexCommand } from "./code/index-command.ts";
import { watchCommand } from "./code/watch-command.ts";
import type { Command } from "./command.ts";
import { completionCommand } from "./completion.ts";
import { configCommand } from "./config-command.ts";
import { exportDatabaseCommand, importDatabaseCommand } from "./database-commands.ts";
import { hookCommand } from "./hook/hook-command.ts";
import { initCommand } from "./init/init-command.ts";
import { mcpCommand } from "./mcp-command.ts";
import { operationCommand } from "./operation-command.ts";
import { serveCommand } from "./serve-command.ts";
import { tokenCommand } from "./token-command.ts";
import { tourCommand } from "./tour-command.ts";
import { exportCommand, importCommand } from "./transfer-commands.ts";
import { trustCommand } from "./trust-command.ts";

/** Commands that do more than their operation: they read and write files of the user. */
const FILE_COMMANDS: readonly Command[] = [
  exportCommand,
  importCommand,
  exportDatabaseCommand,
  importDatabaseCommand,
  indexCommand,
  watchCommand,
];
const isFileCommand = (command: Command) => FILE_COMMANDS.some(({ path }) => path.join(" ") === command.path.join(" "));

/** All commands: one per operation, and the commands of the installation. */
export const commands: readonly Command[] = [
  ...decorateOperations(operations)
    .filter(({ cli }) => !cli?.hidden)
    .map(operationCommand)
    .filter((command) => !isFileCommand(command)),
  ...FILE_COMMANDS,
  initCommand,
  hookCommand,
  mcpCommand,
  serveCommand,
  tokenCommand,
  tourCommand,
  configCommand,
  trustCommand,
  completionCommand(() => commands),
];

export interface Found {
  readonly command: Command | undefined;
  /** The recognised words: the path of a command, or a common prefix of several. */
  readonly path: readonly string[];
  readonly rest: readonly string[];
}

/** Finds the command that the arguments start with. The longest path wins, so `cairn backup` and `cairn backup list` can both exist. */
export function findCommand(args: readonly string[]): Found {
  let found: Found = { command: undefined, path: [], rest: args };
  for (let length = 1; length <= args.length; length++) {
    const path = args.slice(0, length);
    const under = commandsUnder(path);
    if (under.length === 0) break;
    const command = under.find((candidate) => candidate.path.length === length);
    if (command || found.command === undefined) found = { command, path, rest: args.slice(length) };
  }
  return found;
}

export function commandsUnder(path: readonly string[]): readonly Command[] {
  return commands.filter((command) => path.every((word, index) => command.path[index] === word));
}

/** Returns the words that may follow a path. */
export function wordsAfter(path: readonly string[]): readonly string[] {
  return [...new Set(commandsUnder(path).flatMap((command) => command.path[path.length] ?? []))];
}
