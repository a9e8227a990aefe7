import { decorateServed } from "../client/decorate-served.ts";
import type { Operation } from "../operations/operation.ts";
import type { Command, CommandEntry } from "./command.ts";
import { commandPath } from "./command-words.ts";
import { operationCommand } from "./operation-command.ts";

/** Commands that are more than their operation, and the commands of the installation. Each is loaded only when it runs. */
export const OWN_COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  "checkpoint export": async () => (await import("./transfer-commands.ts")).exportCommand,
  "checkpoint import": async () => (await import("./transfer-commands.ts")).importCommand,
  "database export": async () => (await import("./database-commands.ts")).exportDatabaseCommand,
  "database import": async () => (await import("./database-commands.ts")).importDatabaseCommand,
  "code index": async () => (await import("./code/index-command.ts")).indexCommand,
  "code similar": async () => (await import("./code/similar-command.ts")).similarCommand,
  "code watch": async () => (await import("./code/watch-command.ts")).watchCommand,
  "run work": async () => (await import("./run-work/work-command.ts")).workCommand,
  init: async () => (await import("./init/init-command.ts")).initCommand,
  adopt: async () => (await import("./adopt/adopt-command.ts")).adoptCommand,
  hook: async () => (await import("./hook/hook-command.ts")).hookCommand,
  mcp: async () => (await import("./mcp-command.ts")).mcpCommand,
  serve: async () => (await import("./serve-command.ts")).serveCommand,
  token: async () => (await import("./token-command.ts")).tokenCommand,
  tour: async () => (await import("./tour-command.ts")).tourCommand,
  "config get": async () => (await import("./config-command.ts")).configGetCommand,
  "config set": async () => (await import("./config-command.ts")).configSetCommand,
  "config unset": async () => (await import("./config-command.ts")).configUnsetCommand,
  ui: async () => (await import("./ui/ui-command.ts")).uiCommand,
  trust: async () => (await import("./trust-command.ts")).trustCommand,
  completion: async () => (await import("./completion.ts")).completionCommand,
};

/** Loads the command of an entry. */
export async function loadCommand(entry: CommandEntry): Promise<Command> {
  const path = entry.aliasOf ?? entry.path;
  const own = OWN_COMMANDS[path.join(" ")];
  if (own) return own();
  const isCommand = (candidate: Operation) => commandPath(candidate).join(" ") === path.join(" ");
  const served = path[0] === "checkpoint" ? await checkpointOperationsWith(isCommand) : undefined;
  const operation = (served ? decorateServed(served) : await allOperations()).find(isCommand);
  return operationCommand(operation!, served);
}

/** Loads the operations of checkpoints alone, because their commands run most often. A command that only reads needs no others. */
async function checkpointOperationsWith(isCommand: (candidate: Operation) => boolean): Promise<readonly Operation[]> {
  const { checkpointOperations } = await import("../checkpoints/operations.ts");
  if (checkpointOperations.find(isCommand)?.access === "read") return checkpointOperations;
  const [{ upkeepOperations }, { freshnessOperations }] = await Promise.all([
    import("../checkpoints/upkeep-operations.ts"),
    import("../freshness/operations.ts"), // a save resolves the symbols in its texts
  ]);
  return [...checkpointOperations, ...upkeepOperations, ...freshnessOperations];
}

async function allOperations(): Promise<readonly Operation[]> {
  const [{ operations }, { decorateOperations }] = await Promise.all([
    import("../operations/list.ts"),
    import("../client/decorate-operations.ts"),
  ]);
  return decorateOperations(operations);
}
