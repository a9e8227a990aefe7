import type { Checkpoint } from "../model/checkpoint.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import type { Knowledge } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import type { DeletableRecords, DeletedQuery } from "../ports/deletable-records.ts";
import type { FileOptions } from "../ports/project-files.ts";
import type { ProjectStore } from "../ports/storage.ts";

/** Problems that a report of many records names. */
export const PROBLEMS_SHOWN = 20;

/** Pages of a project's records, and the damaged ones between them. */
export interface Page<RecordType> {
  readonly records: readonly RecordType[];
  readonly damaged: readonly DamagedRecord[];
}

/** Stores records like a save: validated, redacted and embedded. */
export type Store = (projectPath: string, records: readonly unknown[], options: FileOptions) => Promise<Stored>;

export interface Stored {
  readonly imported: number;
  readonly present: number;
  readonly problems: readonly { readonly problem: string }[];
}

/** Returns a function that adds to the number of records done and reports it. */
export function progressCounter(progress: ((done: number) => void) | undefined): (more: number) => void {
  let done = 0;
  return (more) => {
    done += more;
    progress?.(done);
  };
}

/** Reads all deleted records of a collection with their times of deletion, the latest first. */
export async function* deletedPages<RecordType extends { readonly id: string }>(
  store: DeletableRecords<RecordType>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Page<RecordType & { readonly deletedAt: string }>> {
  for (let after: DeletedQuery["after"]; ; ) {
    signal?.throwIfAborted();
    const { records, damaged } = await store.listDeleted({ limit: LIMITS.transferRecords, after });
    yield { records: records.map(({ record, deletedAt }) => ({ ...record, deletedAt })), damaged };
    const last = records.at(-1);
    if (!last || records.length < LIMITS.transferRecords) return;
    after = { at: last.deletedAt, id: last.record.id };
  }
}

/** Reads all checkpoints of a project, newest first. */
export async function* checkpointPages({ checkpoints }: ProjectStore, signal: AbortSignal | undefined): AsyncGenerator<Page<Checkpoint>> {
  for (let after: { at: string; id: string } | undefined; ; ) {
    signal?.throwIfAborted();
    const page = await checkpoints.list({ limit: LIMITS.transferRecords, offset: 0, sortBy: "created_at", after });
    yield { records: page.checkpoints, damaged: page.damaged };
    const last = page.checkpoints.at(-1);
    if (!last || page.checkpoints.length < LIMITS.transferRecords) return;
    after = { at: last.createdOrder, id: last.id };
  }
}

/** Reads all knowledge of a project, newest first. */
export async function* knowledgePages({ knowledge }: ProjectStore, signal: AbortSignal | undefined): AsyncGenerator<Page<Knowledge>> {
  for (let after: { at: string; id: string } | undefined; ; ) {
    signal?.throwIfAborted();
    const { records, damaged } = await knowledge.list({ limit: LIMITS.transferRecords, after });
    yield { records, damaged };
    const last = records.at(-1);
    if (!last || records.length < LIMITS.transferRecords) return;
    after = { at: last.createdOrder, id: last.id };
  }
}
