import type { Anchored } from "../model/anchor.ts";
import type { Storage } from "../ports/storage.ts";
import { type CheckedRecord, checkIndex } from "./check-index.ts";
import { judge } from "./judge.ts";
import { timeBudget } from "./time-budget.ts";

/** Returns the records of a project with their freshness, compared with its code index. Never fails: without an index it is unknown. */
export type MarkRecords = <Record extends Anchored & CheckedRecord>(
  projectPath: string | undefined,
  records: readonly Record[],
) => Promise<Record[]>;

/** Returns the function that marks records. `limitMs`: milliseconds that the code index may take for one answer. */
export function recordMarker({ storage, limitMs }: { readonly storage: Storage; readonly limitMs: number }): MarkRecords {
  return async (projectPath, records) => {
    const anchored = records.filter(({ anchors }) => anchors.length > 0);
    if (anchored.length === 0 || !projectPath) return records.map((record) => ({ ...record, freshness: judge(record, { marks: [] }) }));
    const budget = timeBudget(limitMs);
    try {
      const project = await budget.within(() => storage.find(projectPath));
      const marks = project && (await checkIndex(project.code, anchored, budget.within));
      const marksOf = new Map(anchored.map((record, index) => [record, marks?.[index] ?? []] as const));
      return records.map((record) => {
        const own = marksOf.get(record) ?? [];
        const isChecked = own.some(({ state }) => state !== "unknown");
        return { ...record, freshness: judge(record, { marks: own, ...(isChecked && { checked: "index" as const }) }) };
      });
    } finally {
      budget.end();
    }
  };
}
