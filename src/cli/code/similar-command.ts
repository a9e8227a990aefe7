import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { codeSimilar } from "../../code/operations.ts";
import { CairnError } from "../../model/errors.ts";
import type { Command } from "../command.ts";
import { operationCommand } from "../operation-command.ts";

const base = operationCommand(codeSimilar);

/** `cairn code similar <path> [line]`, `<path>:<line>` or `cairn code similar "text"`: an argument that is no file is a text. */
export const similarCommand: Command = {
  ...base,
  examples: ['cairn code similar "retry with exponential backoff"', ...base.examples],
  run(call) {
    const { path, line, text, ...rest } = call.values;
    if (typeof path !== "string" || line !== undefined || text !== undefined) return base.run(call);
    const folders = [call.host.cwd, call.project().tree];
    if (isFile(path, folders)) return base.run(call);
    const [, file, number] = /^(\S+):([1-9]\d{0,8})$/.exec(path) ?? [];
    if (file === undefined) return base.run({ ...call, values: { ...rest, text: path } });
    if (!isFile(file, folders)) throw new CairnError("not_found", `There is no file ${file}. For a text, use --text.`);
    return base.run({ ...call, values: { ...rest, path: file, line: Number(number) } });
  },
};

const isFile = (path: string, folders: readonly string[]) =>
  !path.includes("\0") && (existsSync(resolve(folders[0]!, path)) || folders.some((folder) => existsSync(join(folder, path))));
