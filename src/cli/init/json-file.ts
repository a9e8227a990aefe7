import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CairnError } from "../../model/errors.ts";

export type JsonObject = Record<string, unknown>;
export type Change = "created" | "changed" | "unchanged" | "removed";

/**
 * Changes a JSON file that others write too: what they put there stays, in their order and their indentation. A file that
 * cannot be read as JSON is left alone. Written under another name first, so that nobody ever sees half of it.
 */
export function editJsonFile(path: string, edit: (content: JsonObject) => JsonObject | undefined): Change {
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

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return undefined;
    throw new CairnError("unavailable", `${path} cannot be read (${code}). Nothing was changed.`, { cause: error });
  }
}

function parse(path: string, text: string): JsonObject {
  try {
    const content: unknown = text.trim() === "" ? {} : JSON.parse(text.replace(/^\uFEFF/, ""));
    if (isObject(content)) return content;
  } catch {
    // The same to the person as a file that holds something else.
  }
  throw new CairnError("conflict", `${path} does not hold a JSON object, so it was left alone. Repair it, then try again.`);
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
