import type { Anchored } from "../model/anchor.ts";
import type { Storage } from "../ports/storage.ts";
import { type CheckedRecord, checkIndex } from "./check-index.ts";
import { judge } from "./judge.ts";

/** Returns the records of a project with their freshness, compared with its code index. Never fails: without an index it is unknown. */
export type MarkRecords = <Record extends Anchored & CheckedRecord>(
  projectPath: string | undefined,
  records: readonly Record[],
) => Promise<Record[]>;

/** Milliseconds within which the code index must answer. */
const LIMIT_MS = 50;

export function recordMarker({ storage }: { readonly storage: Storage }): MarkRecords {
  return async (projectPath, records) => {
    const anchored = records.filter(({ anchors }) => anchors.length > 0);
    if (anchored.length === 0 || projectPath === undefined)
      return records.map((record) => ({ ...record, freshness: judge(record, { marks: [] }) }));
    const marks = await within(LIMIT_MS, async () => {
      const project = await storage.find(projectPath);
      return project && (await checkIndex(project.code, anchored));
    });
    return records.map((record) => {
      const own = marks?.[anchored.indexOf(record)];
      const isChecked = own?.some(({ state }) => state !== "unknown") === true;
      return { ...record, freshness: judge(record, { marks: own ?? [], ...(isChecked && { checked: "index" as const }) }) };
    });
  };
}

/** Returns the result of the work, or `undefined` if it fails or takes longer: a damaged or busy index must not fail a search. */
async function within<T>(limitMs: number, work: () => Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs);
  });
  try {
    return await Promise.race([work().catch(() => undefined), late]);
  } finally {
    clearTimeout(timer);
  }
}
