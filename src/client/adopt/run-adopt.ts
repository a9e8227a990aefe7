import { checkpointRecord } from "./checkpoint-record.ts";
import type { Ledger } from "./ledger.ts";
import { noteRecords } from "./note-records.ts";
import { readItems } from "./read-items.ts";
import type { AdoptHost, AdoptReader, AdoptTool, AdoptUnit, FoundUnits, ProblemItem } from "./reader.ts";
import { recordWriter } from "./record-writer.ts";
import type { AdoptTarget, Place } from "./target.ts";

/** What was found of one tool, and what became of it. */
export interface ToolReport {
  readonly tool: AdoptTool;
  readonly files: number;
  readonly bytes: number;
  /** Sessions with a request, and notes, including those of unchanged files. */
  sessions: number;
  notes: number;
  /** New records, or in a dry run those of files that were not adopted yet. */
  imported: number;
  /** Records that were replaced because their session or note has changed. */
  updated: number;
  /** Records that existed already. */
  unchanged: number;
  /** Sessions without a request. */
  empty: number;
  problems: number;
}

export interface AdoptReport {
  readonly tools: readonly ToolReport[];
  readonly projects: readonly string[];
  readonly problems: readonly (ProblemItem & { readonly tool: AdoptTool })[];
}

export interface AdoptOptions {
  readonly readers: readonly AdoptReader[];
  readonly host: AdoptHost;
  readonly ledger: Ledger;
  readonly target: AdoptTarget;
  readonly findProject: (folder: string) => string | undefined;
  readonly dryRun: boolean;
  readonly now: () => Date;
  readonly signal: AbortSignal;
  /** Receives bytes read and all bytes to read. */
  readonly progress: (done: number, total: number, message: string) => void;
}

const PROBLEMS_LISTED = 200;

/**
 * Reads what the tools have and stores it. Each session has a fixed id, and a unit enters the ledger after its records are stored. So a
 * run that was killed continues with the next one, and nothing is stored twice.
 */
export async function runAdopt(options: AdoptOptions): Promise<AdoptReport> {
  const { readers, host, ledger, target, signal, progress, dryRun } = options;
  const found: { reader: AdoptReader; units: FoundUnits["units"]; report: ToolReport }[] = [];
  const problems: (ProblemItem & { tool: AdoptTool })[] = [];
  for (const reader of readers) {
    const { units, problems: early } = await reader.find(host, signal);
    const report = emptyReport(reader.tool, units);
    found.push({ reader, units, report });
    for (const problem of early) note(report, problem);
  }
  if (!dryRun) await forgetMissing(ledger, target);
  const total = found.reduce((sum, { report }) => sum + report.bytes, 0);
  let done = 0;
  const projects = new Set<string>();
  const writer = recordWriter(options);

  for (const { reader, units, report } of found) {
    for (const unit of units) {
      signal.throwIfAborted();
      const before = ledger.get(reader.tool, unit.path);
      if (before?.fingerprint === unit.fingerprint) {
        report.sessions += before.sessions;
        report.notes += before.notes;
        report.unchanged += before.sessions + before.notes;
        for (const place of before.places) if (place !== null) projects.add(place);
      } else await readUnit(reader.tool, unit, report);
      done += unit.bytes;
      progress(done, total, reader.tool);
    }
    await writer.flush();
  }
  await writer.flush();
  return { tools: found.map(({ report }) => report), projects: [...projects].sort(), problems };

  async function readUnit(tool: AdoptTool, unit: AdoptUnit, report: ToolReport): Promise<void> {
    const read = writer.begin(tool, unit, report, (problem) => note(report, { type: "problem", path: unit.path, problem }));
    let isComplete = true;
    for await (const item of readItems(unit, signal, () => (isComplete = false))) {
      if (item.type === "problem") {
        note(report, item);
        continue;
      }
      const folder = item.type === "session" ? item.digest.folder : item.folder;
      const place: Place = folder === undefined ? undefined : options.findProject(folder);
      if (place === undefined && (item.type === "session" || folder !== undefined)) {
        if (item.type === "session" && item.digest.goal === undefined) report.empty++;
        else note(report, { type: "problem", path: unit.path, problem: "names no folder, so its project is unknown" });
        continue;
      }
      if (item.type === "note") await read.addNotes(place, noteRecords(tool, unit.path, item, host.redact));
      else {
        const record = checkpointRecord(tool, item, { now: options.now().toISOString(), redact: host.redact });
        if (record) await read.addCheckpoint(place!, record);
        else report.empty++;
      }
      if (place !== undefined) projects.add(place);
    }
    if (isComplete) await read.end();
    else read.abandon();
  }

  function note(report: ToolReport, problem: ProblemItem): void {
    report.problems++;
    if (problems.length < PROBLEMS_LISTED) problems.push({ ...problem, tool: report.tool });
  }
}

/** Forgets the units of places whose records are gone, such as after a database was deleted: the ledger would hide them forever. */
async function forgetMissing(ledger: Ledger, target: AdoptTarget): Promise<void> {
  const places = new Set(ledger.entries().flatMap(({ places }) => places));
  for (const place of places) {
    const own = ledger.entries().filter((entry) => entry.places.includes(place));
    const hasRecords = await target.hasAdopted(place ?? undefined);
    if (!hasRecords && own.some(({ sessions, notes }) => sessions + notes > 0)) ledger.forget((entry) => entry.places.includes(place));
  }
}

function emptyReport(tool: AdoptTool, units: readonly AdoptUnit[]): ToolReport {
  const bytes = units.reduce((sum, unit) => sum + unit.bytes, 0);
  return { tool, files: units.length, bytes, sessions: 0, notes: 0, imported: 0, updated: 0, unchanged: 0, empty: 0, problems: 0 };
}
