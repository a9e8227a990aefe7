import { createHash } from "node:crypto";
import { readRegularFile, shortPath } from "../files/regular-file.ts";
import { CairnError } from "../model/errors.ts";
import type { Problem } from "./given.ts";

/** A configuration is a page of text; more is some other file. */
const FILE_BYTES_MAX = 1024 * 1024;

export interface ConfigFile {
  readonly content: Readonly<Record<string, unknown>>;
  /** Of the bytes of the file, for trust. */
  readonly sha256: string;
}

/** Reads a configuration file; `undefined` when there is no such file, or with a problem when it cannot be used. */
export function readConfigFile(path: string, problems: Problem[]): ConfigFile | undefined {
  const refuse = (problem: string): undefined => {
    problems.push({ where: path, key: "", problem });
  };
  let bytes: Buffer;
  try {
    bytes = readRegularFile(path, FILE_BYTES_MAX);
  } catch (error) {
    if (error instanceof CairnError) return refuse(error.message.slice(shortPath(path).length + 1)); // the problem names its place
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    return refuse(`cannot be read (${code}); check its permissions`);
  }
  const text = bytes.toString("utf8");
  let content: unknown;
  try {
    content = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    return refuse(`is not valid JSON${lineOf(text, error as Error)}`);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) return refuse('must hold an object: { "data_dir": "…" }');
  return { content: content as ConfigFile["content"], sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Where the mistake is. The parser's own message quotes the file, and there may be a key in it. */
function lineOf(text: string, { message }: Error): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  return position === undefined ? "" : ` (line ${text.slice(0, Number(position)).split("\n").length})`;
}
