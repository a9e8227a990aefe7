import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { readRegularFile } from "../../files/regular-file.ts";
import { CairnError } from "../../model/errors.ts";

export type JsonObject = Record<string, unknown>;
export type Change = "created" | "changed" | "unchanged" | "removed";

/**
 * Changes a JSON file that other programs write too: their content keeps its order and indentation. A file that is not JSON is not
 * changed. The file is replaced atomically. A repository may contain symbolic links to other files of the user, so nothing outside `root`,
 * a real path, is read or written.
 */
export function editJsonFile(root: string, file: string, edit: (content: JsonObject) => JsonObject | undefined): Change {
  const path = join(root, file);
  assertInside(root, file);
  const before = read(path);
  const content = before === undefined ? {} : parse(path, before);
  const after = edit(structuredClone(content));
  if (after === undefined || Object.keys(after).length === 0) {
    if (before === undefined || Object.keys(content).length === 0) return "unchanged";
    rmSync(path);
    return "removed";
  }
  if (JSON.stringify(after) === JSON.stringify(content)) return "unchanged";
  const indent = /^[ \t]+(?=")/m.exec(before ?? "")?.[0] ?? "  ";
  const end = before === undefined || before.endsWith("\n") ? "\n" : "";
  write(path, JSON.stringify(after, null, indent) + end, before === undefined);
  return before === undefined ? "created" : "changed";
}

/**
 * Writes a text file of Cairn's own, or removes it if `text` is undefined. A file that does not start with `mark` belongs to somebody else:
 * it is not removed, and a write is refused.
 */
export function editOwnFile(root: string, file: string, mark: string, text: string | undefined): Change {
  const path = join(root, file);
  assertInside(root, file);
  const before = read(path);
  const isOurs = before?.startsWith(mark) === true;
  if (text === undefined) {
    if (!isOurs) return "unchanged";
    rmSync(path);
    return "removed";
  }
  if (before !== undefined && !isOurs)
    throw new CairnError("conflict", `${path} was not written by Cairn, so it was not changed. Rename it, then try again.`);
  if (before === text) return "unchanged";
  write(path, text, before === undefined);
  return before === undefined ? "created" : "changed";
}

/** Bytes of a settings file, at most. */
const FILE_BYTES = 16 * 1024 * 1024;

/** Checks every existing folder on the path, and the file. */
function assertInside(root: string, file: string): void {
  let path = root;
  for (const part of relative(root, join(root, file)).split(sep)) {
    path = join(path, part);
    if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    const target = realPathOf(path);
    if (target === undefined || !target.startsWith(root.endsWith(sep) ? root : root + sep))
      throw new CairnError(
        "conflict",
        `${path} is a symbolic link that leads ${target === undefined ? "nowhere" : "out of the repository"}, so it was left alone. Replace it by a file or folder, then try again.`,
      );
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function read(path: string): string | undefined {
  try {
    return readRegularFile(path, FILE_BYTES).toString("utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return undefined;
    if (error instanceof CairnError) throw error;
    throw new CairnError("unavailable", `${path} cannot be read (${code}). Nothing was changed.`, { cause: error });
  }
}

function parse(path: string, text: string): JsonObject {
  try {
    const content: unknown = text.trim() === "" ? {} : JSON.parse(text.replace(/^\uFEFF/, ""));
    if (isObject(content)) return content;
  } catch {
    // Reported as a file without a JSON object.
  }
  throw new CairnError("conflict", `${path} does not contain a JSON object, so it was not changed. Repair it, then try again.`);
}

function write(path: string, text: string, isNew: boolean): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    const target = isNew ? path : realpathSync(path); // a link stays a link
    const unfinished = `${target}.${process.pid}.tmp`;
    writeFileSync(unfinished, text, { mode: isNew ? 0o644 : statSync(target).mode & 0o777, flag: "wx" });
    renameSync(unfinished, target);
  } catch (error) {
    throw new CairnError("unavailable", `${path} cannot be written (${(error as NodeJS.ErrnoException).code}). Check its permissions.`, {
      cause: error,
    });
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
