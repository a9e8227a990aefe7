import type { RemovedReport } from "../../client/adopt/remove-adopted.ts";
import type { AdoptReport, ToolReport } from "../../client/adopt/run-adopt.ts";
import { megabytes } from "../../text/megabytes.ts";
import type { Host } from "../host.ts";
import { escapeControls, styleFor } from "../terminal/style.ts";
import { table } from "../terminal/table.ts";

const PROBLEMS_SHOWN = 10;
const COLUMNS = ["TOOL", "FILES", "SIZE", "SESSIONS", "NOTES"].map((title, index) => ({ title, flexible: false, right: index > 0 }));

/** Returns the report as data for --json. */
export function adoptData({ tools, projects, problems }: AdoptReport, dryRun: boolean) {
  const { sessions, notes, imported, updated, unchanged, empty } = sums(tools);
  return {
    dry_run: dryRun,
    ...{ sessions, notes, imported, updated, unchanged, empty },
    projects,
    tools: tools.map((tool) => ({ ...tool })),
    problems: problems.map(({ tool, path, problem }) => ({ tool, path, problem })),
  };
}

/** Returns the report for a terminal. */
export function adoptText({ tools, projects, problems }: AdoptReport, dryRun: boolean, { home, stdout, env }: Host): string {
  const present = tools.filter(({ files, problems }) => files + problems > 0);
  if (present.length === 0) return "No sessions or notes of other tools were found on this machine.";
  const all = sums(tools);
  const rows = present.map(({ tool, files, bytes, sessions, notes }) => [tool, `${files}`, size(bytes), `${sessions}`, `${notes}`]);
  const outcome = `${all.imported} ${dryRun ? "would be imported" : "imported"}, ${all.updated} updated, ${all.unchanged} unchanged`;
  const short = (path: string) => (path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path);
  return [
    table(COLUMNS, rows, stdout.columns, styleFor(stdout, env)),
    "",
    `${count(all.sessions, "session")} and ${count(all.notes, "note")} of ${count(projects.length, "project")}.`,
    `${outcome}.`,
    ...(all.empty > 0 ? [`${count(all.empty, "session")} without a request left out.`] : []),
    ...(all.problems > 0 ? [`${all.problems} not read:`] : []),
    ...problems
      .slice(0, PROBLEMS_SHOWN)
      .flatMap(({ path, problem }) => [`  ${escapeControls(short(path)).replaceAll("\n", " ")}`, `    ${problem}`]),
    ...(all.problems > PROBLEMS_SHOWN ? [`  … and ${all.problems - PROBLEMS_SHOWN} more`] : []),
    dryRun ? "Nothing was changed. To import: cairn adopt" : "To undo: cairn adopt --remove",
  ].join("\n");
}

export function removedText({ checkpoints, notes, projects, notExamined }: RemovedReport, dryRun: boolean): string {
  const verb = dryRun ? "would be deleted" : "deleted";
  return [
    `${count(checkpoints, "checkpoint")} and ${count(notes, "knowledge record")} of ${count(projects, "project")} ${verb}.`,
    ...(notExamined > 0 ? [`${count(notExamined, "project")} not examined: the storage lists only 100, and no ledger names them.`] : []),
  ].join("\n");
}

type Sums = Omit<ToolReport, "tool">;

function sums(tools: readonly ToolReport[]): Sums {
  const fields = ["files", "bytes", "sessions", "notes", "imported", "updated", "unchanged", "empty", "problems"] as const;
  return Object.fromEntries(fields.map((field) => [field, tools.reduce((sum, tool) => sum + tool[field], 0)])) as unknown as Sums;
}

function size(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : megabytes(bytes);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
