import { ADOPTED_TAG, isAdopted, isNoteSource } from "./adopted-id.ts";
import type { AdoptTarget, Place } from "./target.ts";

export interface RemovedReport {
  readonly checkpoints: number;
  readonly notes: number;
  readonly projects: number;
  /** Projects that were not examined, because the storage has too many and the ledger does not name them. */
  readonly notExamined: number;
}

export interface RemoveOptions {
  readonly target: AdoptTarget;
  /** Places that the ledger names. */
  readonly places: readonly Place[];
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
  readonly progress: (done: number, total: number, message: string) => void;
}

/** Deletes the records that were adopted, and no others. A run that was killed can be repeated. */
export async function removeAdopted({ target, places, dryRun, signal, progress }: RemoveOptions): Promise<RemovedReport> {
  const { paths, more } = await target.projects();
  const all = [...new Set<Place>([...places, ...paths, undefined])];
  const unseen = Math.max(0, more - places.filter((place) => place !== undefined && !paths.includes(place)).length);
  const counts = { checkpoints: 0, notes: 0, projects: 0, notExamined: unseen };
  for (const [index, place] of all.entries()) {
    progress(index, all.length, place ?? "shared knowledge");
    const checkpoints = place === undefined ? 0 : await removeCheckpoints(target, place, dryRun, signal);
    const notes = await removeNotes(target, place, dryRun, signal);
    counts.checkpoints += checkpoints;
    counts.notes += notes;
    if (place !== undefined && checkpoints + notes > 0) counts.projects++;
  }
  return counts;
}

async function removeCheckpoints(target: AdoptTarget, project: string, dryRun: boolean, signal: AbortSignal): Promise<number> {
  const ids: string[] = [];
  for await (const checkpoint of target.listCheckpoints(project, ADOPTED_TAG)) if (isAdopted(checkpoint)) ids.push(checkpoint.id);
  for (const id of dryRun ? [] : ids) {
    signal.throwIfAborted();
    await target.purgeCheckpoint(project, id);
  }
  return ids.length;
}

async function removeNotes(target: AdoptTarget, place: Place, dryRun: boolean, signal: AbortSignal): Promise<number> {
  const ids: string[] = [];
  for await (const { id, source } of target.listNotes(place)) if (isNoteSource(source)) ids.push(id);
  for (const id of dryRun ? [] : ids) {
    signal.throwIfAborted();
    await target.purgeNote(place, id);
  }
  return ids.length;
}
