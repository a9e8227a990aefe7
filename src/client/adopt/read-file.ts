import { constants, createReadStream } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { join } from "node:path";
import { boundedLines } from "../../files/bounded-lines.ts";
import { CairnError } from "../../model/errors.ts";
import { parseJson } from "../../text/untrusted.ts";
import { ADOPT_LIMITS } from "./limits.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

const READ_BYTES = 256 * 1024;

/** Opens a listed file. Raises `invalid_input` if the path is a symbolic link or a special file by now. */
export async function openListed(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    // A folder above the file may have become a link since it was listed.
    if ((await realpath(path)) !== path || !(await file.stat()).isFile())
      throw new CairnError("invalid_input", "is a symbolic link or not a regular file, so it is not read");
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads a listed file of at most `limitBytes` as UTF-8 text; invalid bytes are replaced. */
export async function readText(path: string, limitBytes: number): Promise<string> {
  const file = await openListed(path);
  try {
    const buffer = Buffer.allocUnsafe(Math.min((await file.stat()).size, limitBytes) + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      length += bytesRead;
      if (length > limitBytes) throw new CairnError("too_large", `has more than ${limitBytes} bytes`);
      if (bytesRead === 0 || length === buffer.length) return buffer.toString("utf8", 0, length).replace(/^\uFEFF/, "");
    }
  } finally {
    await file.close();
  }
}

/** Reads a file that is one JSON object. */
export async function readDocument(path: string, limitBytes: number): Promise<JsonObject> {
  const value = objectOf(parseJson(await readText(path, limitBytes), { values: 4 * ADOPT_LIMITS.lineValues }));
  if (!value) throw new CairnError("invalid_input", "is not a JSON object");
  return value;
}

/** Reads an index file of a tool, which must be a JSON object; `undefined` if it cannot be read. The folder may be a link of the user. */
export async function readIndex(folder: string, name: string): Promise<JsonObject | undefined> {
  try {
    return await readDocument(join(await realpath(folder), name), ADOPT_LIMITS.indexBytes);
  } catch {
    return undefined; // a tool that was never used has none
  }
}

/** Yields the JSON objects of a file of lines. A line that is too long, cut off or not an object is skipped. */
export async function* jsonLines(path: string, signal: AbortSignal): AsyncGenerator<JsonObject> {
  const file = await openListed(path);
  try {
    const input = createReadStream(path, { fd: file.fd, autoClose: false, highWaterMark: READ_BYTES, start: 0 });
    const limits = { lineBytes: ADOPT_LIMITS.lineBytes, unbrokenBytes: ADOPT_LIMITS.unbrokenBytes };
    for await (const line of boundedLines(input as AsyncIterable<Buffer>, signal, limits)) {
      const value = line === undefined ? undefined : parseLine(line);
      if (value) yield value;
    }
  } finally {
    await file.close();
  }
}

function parseLine(line: string): JsonObject | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return objectOf(parseJson(line, { values: ADOPT_LIMITS.lineValues }));
  } catch {
    return undefined; // the last line of a session that is still running may be incomplete
  }
}

export function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.flatMap((one): JsonObject[] => (objectOf(one) ? [one as JsonObject] : [])) : [];
}

/** Returns a text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns a time of this era in ISO 8601, from a text or from milliseconds. */
export function timeOf(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const date = new Date(value);
  const year = Number.isNaN(date.getTime()) ? 0 : date.getUTCFullYear();
  return year >= 2000 && year < 10_000 ? date.toISOString() : undefined;
}
