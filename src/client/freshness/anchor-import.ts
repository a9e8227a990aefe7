import { setImmediate as nextTurn } from "node:timers/promises";
import { readRecords } from "../../knowledge/read-records.ts";
import { LIMITS } from "../../model/limits.ts";
import type { UnanchoredRecord } from "./anchor-to-tree.ts";

/** The file of an import, and the anchors that the caller gives for some of its records. */
export interface ImportedFile {
  readonly content: string;
  readonly format?: Parameters<typeof readRecords>[1];
  readonly kind: Parameters<typeof readRecords>[2];
  readonly given?: Readonly<Record<string, readonly string[]>> | undefined;
}

export type AnchorRecords = (records: readonly UnanchoredRecord[]) => Promise<string[][]>;

/** Records that are anchored between two turns of the event loop. */
const SLICE = 50;
/** Characters of all anchors together: the request has a limit. The service anchors the other records. */
const ANCHOR_CHARS = 8 * 1024 * 1024;
/** Values in the JSON of all anchors together, for the same reason. One slice adds at most a few thousand. */
const ANCHOR_VALUES = LIMITS.jsonValues / 2;

/** Returns the anchors of the records in a file by their ids, or `undefined` if the file cannot be read. */
export async function anchorImport(
  anchor: AnchorRecords,
  { content, format, kind, given = {} }: ImportedFile,
  signal: AbortSignal,
): Promise<Readonly<Record<string, readonly string[]>> | undefined> {
  const file = await readRecords(content, format, kind).catch(() => undefined);
  if (!file) return undefined;
  const anchors: Record<string, readonly string[]> = {};
  let chars = 0;
  let values = 0;
  for (let start = 0; start < file.records.length && chars < ANCHOR_CHARS && values < ANCHOR_VALUES; start += SLICE) {
    const slice = file.records.slice(start, start + SLICE);
    const found = await anchor(
      slice.map(({ id, question, answer }) => ({ texts: [question, answer], given: Object.hasOwn(given, id) ? given[id] : undefined })),
    );
    for (const [index, { id }] of slice.entries()) {
      if (id === "__proto__") continue; // no field may have this name; the service anchors the record
      anchors[id] = found[index]!;
      values += found[index]!.length + 1;
      chars += id.length + found[index]!.reduce((sum, { length }) => sum + length + 3, 0);
    }
    await nextTurn();
    signal.throwIfAborted();
  }
  return { ...given, ...anchors };
}
