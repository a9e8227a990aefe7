import { basename, resolve } from "node:path";
import { readRegularFile, shortPath } from "../files/regular-file.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import type { Flag } from "./command.ts";
import type { Host } from "./host.ts";
import { flagName } from "./schema-flags.ts";

type Values = Readonly<Record<string, unknown>>;

/** Replaces paths by the content of the files, for the fields that the operation lists. `-` means standard input and is kept. */
export function withFiles(operation: Operation, values: Values, { cwd }: Host): Values {
  const given: Record<string, unknown> = { ...values };
  for (const [field, { nameInto }] of Object.entries(operation.cli?.files ?? {})) {
    const path = values[flagName(field)];
    if (typeof path !== "string" || path === "-") continue;
    given[flagName(field)] = readText(resolve(cwd, path), operation.limits.bodyBytes ?? LIMITS.bodyBytes);
    if (nameInto !== undefined && given[flagName(nameInto)] === undefined) given[flagName(nameInto)] = basename(path);
  }
  return given;
}

/** Adapts the flag of a field that takes the content of a file, or that defaults to the name of a file. */
export function fileFlag(operation: Operation, flag: Flag): Flag {
  const files = Object.entries(operation.cli?.files ?? {});
  if (files.some(([field]) => flagName(field) === flag.name)) return { ...flag, placeholder: "file" };
  const fromName = files.some(([, { nameInto }]) => nameInto !== undefined && flagName(nameInto) === flag.name);
  return fromName ? { ...flag, required: false, description: `${flag.description} Default: the file's name.` } : flag;
}

function readText(path: string, maxBytes: number): string {
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path, maxBytes);
  } catch (cause) {
    if (cause instanceof CairnError) throw cause;
    throw new CairnError(
      "invalid_input",
      `The file ${shortPath(path)} cannot be read. Give the path of an existing file, or - for standard input.`,
      {
        cause,
      },
    );
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new CairnError("invalid_input", `The file ${shortPath(path)} is not UTF-8 text.`, { cause });
  }
}
