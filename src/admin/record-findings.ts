import type { DatabaseRepair, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { Storage } from "../ports/storage.ts";
import { forEachParallel } from "../scheduling/for-each-parallel.ts";

const NAMED = 3;

/** Reports records that do not match their checksums, derived data that does not match the records, and quarantined records. */
export async function recordFindings(storage: Storage, projectIds: readonly string[], visit: VisitOptions = {}): Promise<Finding[]> {
  return visitDatabases(projectIds, visit, async (projectId) => {
    const found: Finding[] = [];
    const subject = subjectOf(projectId);
    const { damaged, stale, quarantined } = await unlessUnreadable(() => storage.checkRecords(projectId), NOTHING);
    if (damaged.length > 0) {
      const few = damaged.slice(0, NAMED).map(({ collection, id, reason }) => `${collection} ${id}: ${reason}`);
      const more = damaged.length > NAMED ? `; and ${damaged.length - NAMED} more` : "";
      const message = `${damaged.length} damaged records are skipped by every read (${few.join("; ")}${more}). Restore a backup, or quarantine them.`;
      found.push({ check: "records", severity: "problem", subject, message, command: "cairn doctor --repair" });
    }
    if (stale.length > 0) {
      const message = `Derived data does not match the records: ${stale.slice(0, NAMED).join("; ")}. It can be rebuilt.`;
      found.push({ check: "records", severity: "problem", subject, message, command: "cairn doctor --repair" });
    }
    if (quarantined > 0)
      found.push({
        check: "records",
        severity: "note",
        subject,
        message: `${quarantined} damaged records are in its table quarantined_records. docs/doctor.md explains how to inspect and delete them.`,
      });
    return found;
  });
}

/** Databases that are checked at the same time. */
export const CHECKED_AT_ONCE = 4;

export interface VisitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with each database that was not visited for lack of time. */
  readonly onLate?: ((projectId: string) => void) | undefined;
}

/** Visits the databases of these projects and the shared one, several at a time, and returns all results in their order. */
export async function visitDatabases<T>(
  projectIds: readonly string[],
  { signal, onLate = () => {} }: VisitOptions,
  visit: (projectId: string) => Promise<readonly T[]>,
): Promise<T[]> {
  const ids = [...projectIds, SHARED_PROJECT_ID];
  const results = new Map<string, readonly T[]>();
  const options = { concurrency: CHECKED_AT_ONCE, signal };
  const late = await forEachParallel(ids, options, async (projectId) => void results.set(projectId, await visit(projectId)));
  for (const projectId of late) onLate(projectId);
  return ids.flatMap((id) => results.get(id) ?? []);
}

/** Repairs every database that can be repaired. The findings report the remaining problems. */
export async function repairAll(storage: Storage, projectIds: readonly string[], visit: VisitOptions = {}): Promise<DatabaseRepair[]> {
  return visitDatabases(projectIds, visit, async (projectId) => {
    const { quarantined, rebuilt } = await unlessUnreadable(() => storage.repairRecords(projectId), { quarantined: [], rebuilt: [] });
    return quarantined.length + rebuilt.length > 0 ? [{ subject: subjectOf(projectId), quarantined, rebuilt }] : [];
  });
}

const NOTHING = { damaged: [], stale: [], quarantined: 0 };

/** Names a project's database in a report. */
export function subjectOf(projectId: string): string {
  return projectId === SHARED_PROJECT_ID ? "shared" : `project ${projectId}`;
}

/** Returns `otherwise` for a database that is damaged as a whole or newer: other checks report it. */
async function unlessUnreadable<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CairnError && (error.code === "unavailable" || error.code === "conflict")) return otherwise;
    throw error;
  }
}
