import { decorateOperations } from "../client/decorate-operations.ts";
import { operations } from "../operations/list.ts";
import type { Command } from "./command.ts";
import { OWN_COMMANDS } from "./load-command.ts";
import { operationCommand } from "./operation-command.ts";

const own = await Promise.all(Object.values(OWN_COMMANDS).map((load) => load()));
const isOwn = ({ path }: Command) => path.join(" ") in OWN_COMMANDS;

/** All commands: one per operation, and the commands of the installation. The build writes the command table from this list. */
export const commands: readonly Command[] = [
  ...decorateOperations(operations)
    .filter(({ cli }) => !cli?.hidden)
    .map((operation) => operationCommand(operation))
    .filter((command) => !isOwn(command)),
  ...own,
];
