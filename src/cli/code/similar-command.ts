import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { codeSimilar } from "../../code/operations.ts";
import type { Command } from "../command.ts";
import { operationCommand } from "../operation-command.ts";

const base = operationCommand(codeSimilar);

/** `cairn code similar <path> [line]` or `cairn code similar "text"`: an argument that is no file is a text. */
export const similarCommand: Command = {
  ...base,
  examples: ['cairn code similar "retry with exponential backoff"', ...base.examples],
  run(call) {
    const { path, line, text, ...rest } = call.values;
    const isText =
      typeof path === "string" && line === undefined && text === undefined && !isFile(path, [call.host.cwd, call.project().tree]);
    return base.run(isText ? { ...call, values: { ...rest, text: path } } : call);
  },
};

const isFile = (path: string, folders: readonly string[]) =>
  !path.includes("\0") && (existsSync(resolve(folders[0]!, path)) || folders.some((folder) => existsSync(join(folder, path))));
