import { asCairnError, CairnError } from "../../model/errors.ts";
import type { AdoptItem, AdoptUnit } from "./reader.ts";

/** Errors of one file: it changed, vanished, may not be read, or is damaged. Others, such as a full disk, end the run. */
const FILE_ERRORS = new Set(["ENOENT", "EACCES", "EPERM", "ELOOP", "ENOTDIR", "EISDIR", "ENXIO", "EIO"]);
const CONTENT_ERRORS = new Set(["invalid_input", "too_large", "conflict"]);

/** Yields the items of a unit. If it cannot be read to its end, calls `onIncomplete` and yields the reason as a problem. */
export async function* readItems(unit: AdoptUnit, signal: AbortSignal, onIncomplete: () => void): AsyncGenerator<AdoptItem> {
  try {
    yield* unit.read(signal);
  } catch (error) {
    signal.throwIfAborted();
    const problem = problemOf(error);
    if (problem === undefined) throw error;
    onIncomplete();
    yield { type: "problem", path: unit.path, problem };
  }
}

function problemOf(error: unknown): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof CairnError) return CONTENT_ERRORS.has(error.code) ? asCairnError(error).message : undefined;
  return FILE_ERRORS.has(String(code)) ? `cannot be read (${code})` : undefined;
}
