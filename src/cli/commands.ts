import { decorateOperations } from "../client/decorate-operations.ts";
import { operations } from "../operations/list.ts";
import type { Command } from "./command.ts";
import { OWN_COMMANDS } from "./load-command.ts";
import { operationCommand } from "./operation-command.ts";

const own = await Promise.all(Object.values(OWN_COMMANDS).map((load) => load()));
const isOwn = ({ path }: Command) => path.join(" ") in OWN_COMMANDS;

const full: readonly Command[] = [
  ...decorateOperations(operations)
    .filter(({ cli }) => !cli?.hidden)
    .map((operation) => operationCommand(operation))
    .filter((command) => !isOwn(command)),
  ...own,
];

/** Short forms of the commands that people use most. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  save: ["checkpoint", "save"],
  search: ["checkpoint", "search"],
  resume: ["checkpoint", "resume"],
  ls: ["checkpoint", "list"],
  tags: ["checkpoint", "tags"],
  projects: ["project", "list"],
  review: ["review", "list"],
};

/** All commands: one per operation, the commands of the installation, and aliases. The build writes the command table from this list. */
export const commands: readonly Command[] = [
  ...full,
  ...Object.entries(ALIASES).map(([alias, path]) => ({
    ...full.find((command) => command.path.join(" ") === path.join(" "))!,
    path: [alias],
    aliasOf: path,
  })),
];
