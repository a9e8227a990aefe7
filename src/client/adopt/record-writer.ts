import { noteSource, ORIGIN } from "./adopted-id.ts";
import type { CheckpointRecord } from "./checkpoint-record.ts";
import type { Ledger, LedgerEntry } from "./ledger.ts";
import type { NoteRecord } from "./note-records.ts";
import type { AdoptTool, AdoptUnit } from "./reader.ts";
import type { ToolReport } from "./run-adopt.ts";
import type { AdoptTarget, Place } from "./target.ts";

/** Records that are stored together: enough for efficient embedding, few enough to lose little to a kill. */
const BATCH = 100;
/** Notes of a growing database that are imported at once, and their characters: an import has a limit of 16 MB. */
const NOTES = 500;
const NOTE_CHARS = 2_000_000;

interface Pending {
  readonly project: string;
  readonly record: CheckpointRecord;
  readonly report: ToolReport;
  readonly onProblem: (problem: string) => void;
}

/** Receives the records of one unit. */
export interface UnitWriter {
  addCheckpoint(project: string, record: CheckpointRecord): Promise<void>;
  addNotes(place: Place, records: readonly NoteRecord[]): Promise<void>;
  /** Enters the unit into the ledger once all its records are stored. */
  end(): Promise<void>;
  /** Ends a unit that could not be read to its end: what was read is stored, and the next run reads it again. */
  abandon(): void;
}

export interface RecordWriter {
  begin(tool: AdoptTool, unit: AdoptUnit, report: ToolReport, onProblem: (problem: string) => void): UnitWriter;
  /** Stores everything that is pending, then writes the ledger. */
  flush(): Promise<void>;
}

export interface RecordWriterOptions {
  readonly target: AdoptTarget;
  readonly ledger: Ledger;
  readonly dryRun: boolean;
}

/** Collects records by project and stores them in batches. */
export function recordWriter({ target, ledger, dryRun }: RecordWriterOptions): RecordWriter {
  let checkpoints: Pending[] = [];
  let ended: (LedgerEntry & { tool: string })[] = [];

  async function flush(): Promise<void> {
    if (!dryRun) for (const batch of groupBatches(checkpoints)) await storeCheckpoints(target, batch);
    checkpoints = [];
    if (!dryRun) await ledger.append(ended);
    ended = [];
  }

  return {
    flush,
    begin(tool, unit, report, onProblem) {
      const notes = new Map<Place, NoteRecord[]>();
      const places = new Set<string | null>();
      const counts = { sessions: 0, notes: 0 };
      let held = { notes: 0, chars: 0 };
      const storeNotes = async () => {
        for (const [place, records] of notes) {
          if (!dryRun) await storeUnitNotes(target, place, noteSource(tool, unit.path), records, unit.replaces ?? false, report);
          notes.delete(place);
        }
        held = { notes: 0, chars: 0 };
      };
      return {
        async addCheckpoint(project, record) {
          counts.sessions++;
          report.sessions++;
          places.add(project);
          if (dryRun) report.imported++;
          if (checkpoints.push({ project, record, report, onProblem }) >= BATCH) await flush();
        },
        async addNotes(place, records) {
          counts.notes += records.length;
          report.notes += records.length;
          if (dryRun) report.imported += records.length;
          if (records.length > 0) places.add(place ?? null);
          notes.set(place, [...(notes.get(place) ?? []), ...records]);
          held = { notes: held.notes + records.length, chars: held.chars + records.reduce((sum, { answer }) => sum + answer.length, 0) };
          if (!unit.replaces && (held.notes >= NOTES || held.chars >= NOTE_CHARS)) await storeNotes();
        },
        async end() {
          // A place that has no notes of the unit any more gets an empty import, which deletes the old ones.
          const before = unit.replaces ? (ledger.get(tool, unit.path)?.places ?? []) : [];
          for (const place of before) if (!places.has(place)) notes.set(place ?? undefined, []);
          await storeNotes();
          ended.push({ tool, path: unit.path, fingerprint: unit.fingerprint, ...counts, places: [...places] });
        },
        abandon() {
          notes.clear();
        },
      };
    },
  };
}

async function storeUnitNotes(
  target: AdoptTarget,
  place: Place,
  source: string,
  records: readonly NoteRecord[],
  replaces: boolean,
  report: ToolReport,
): Promise<void> {
  const { added, changed } = await target.importNotes(place, source, records, replaces);
  report.imported += added;
  report.updated += changed;
  report.unchanged += records.length - added - changed;
}

/** Groups records by project and tool. Of two records with the same id, the last counts. */
function groupBatches(pending: readonly Pending[]): Pending[][] {
  const groups = new Map<string, Map<string, Pending>>();
  for (const one of pending) {
    const key = `${one.report.tool}\n${one.project}`;
    groups.set(key, (groups.get(key) ?? new Map<string, Pending>()).set(one.record.id, one));
  }
  return [...groups.values()].map((group) => [...group.values()]);
}

/** Stores the records of one project and tool, and replaces those whose session has changed since it was adopted. */
async function storeCheckpoints(target: AdoptTarget, batch: readonly Pending[]): Promise<void> {
  const { project, report } = batch[0]!;
  const { imported, problems } = await target.importCheckpoints(
    project,
    batch.map(({ record }) => record),
  );
  for (const { index, problem } of problems) batch[index]?.onProblem(problem);
  report.imported += imported;
  const existing = batch.length - imported - problems.length;
  if (existing === 0) return;
  let updated = 0;
  for (const { record } of batch) if (await replaceChanged(target, project, record)) updated++;
  report.updated += updated;
  report.unchanged += existing - updated;
}

/** Replaces a checkpoint whose session continued. One that the user has edited stays. */
async function replaceChanged(target: AdoptTarget, project: string, record: CheckpointRecord): Promise<boolean> {
  const stored = await target.getCheckpoint(project, record.id);
  if (!stored || stored.context[ORIGIN.version] === record.context[ORIGIN.version] || stored.updatedAt !== stored.createdAt) return false;
  await target.purgeCheckpoint(project, record.id); // killed here, the next run imports it, because the ledger has the old fingerprint
  await target.importCheckpoints(project, [record]);
  return true;
}
