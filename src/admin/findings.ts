import { type DatabaseName, databaseLabel } from "../model/backup.ts";
import type { DoctorSettings, EmbeddingLeader, ExposedPath, Finding } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { isAbandoned, migrationCommands } from "../model/migration.ts";
import type { UnusableBackup } from "../ports/backup-store.ts";
import type { EmbeddingStore } from "../ports/embedding-store.ts";
import type { DiskRoom, Leftover, ProbedDatabase, UnfinishedMigration } from "../ports/health-probe.ts";
import type { RunCatalog } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import { databaseFlags } from "../text/database-flags.ts";
import { megabytes } from "../text/megabytes.ts";
import { shellWord } from "../text/shell-word.ts";
import { subjectOf, type VisitOptions, visitDatabases } from "./record-findings.ts";

/** Returns the problems of one database. The size of a system is a trigger, so it is not reported here. */
export function databaseFindings(database: ProbedDatabase, problems: readonly string[], { sizeMaxBytes }: DoctorSettings): Finding[] {
  const { kind, bytes, schema, problem, rescued, location, halfSnapshots } = database;
  const subject = databaseLabel(database);
  const found: Finding[] = [];
  const damage = problem ?? problems[0];
  if (damage !== undefined && kind === "code")
    found.push({
      check: "integrity",
      severity: "problem",
      subject,
      message: `It is damaged: ${damage}. Checkpoints and knowledge are not affected. Build it again.`,
      command: `cairn code index --project ${shellWord(database.id)}`,
    });
  else if (damage !== undefined) {
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    const advice = rescued === undefined ? "Restore a backup; the damaged database is kept." : "Put the copy back.";
    found.push({
      check: "integrity",
      severity: "problem",
      subject,
      message: `It is damaged: ${damage}${more}. ${advice}`,
      command:
        rescued === undefined ? `cairn restore ${databaseFlags(database)} --overwrite` : `mv ${shellWord(rescued)} ${shellWord(location)}`,
    });
  }
  if (schema === "newer")
    found.push({
      check: "schema",
      severity: "problem",
      subject,
      message: "It was written by a newer version of Cairn. Upgrade Cairn.",
      command: "npm install -g cairn-memory@latest",
    });
  if (schema === "older" || schema === "altered")
    found.push({
      check: "schema",
      severity: "problem",
      subject,
      message:
        schema === "older"
          ? "It was written by an older version of Cairn. Use that version; the changelog describes how to convert the data."
          : "Its schema was altered. Restore a backup, or use the version of Cairn that wrote it.",
    });
  if (kind !== "system" && bytes > sizeMaxBytes)
    found.push({
      check: "size",
      severity: "problem",
      subject,
      message: `It has ${megabytes(bytes)}; limit ${megabytes(sizeMaxBytes)}.`,
      command: kind === "code" ? "cairn code compact" : `cairn migrate --to postgres://… ${databaseFlags(database)}`,
    });
  if (halfSnapshots.length > 0)
    found.push({
      check: "snapshots",
      severity: "note",
      subject,
      message: `${halfSnapshots.length} snapshots are incomplete; they are never restored.`,
    });
  return found;
}

/** Reports disks without room for a copy of the largest database, which a backup or a repair needs. */
export function diskFindings(disks: readonly DiskRoom[], largestBytes: number, { freeDiskMinBytes }: DoctorSettings): Finding[] {
  const needed = Math.max(freeDiskMinBytes, largestBytes);
  return disks
    .filter(({ freeBytes }) => freeBytes < needed)
    .map(({ path, freeBytes }) => ({
      check: "disk",
      severity: "problem",
      subject: path,
      message: `${megabytes(freeBytes)} are free; ${megabytes(needed)} are needed. Free some space.`,
    }));
}

export function leftoverFindings(leftovers: readonly Leftover[], backups: readonly UnusableBackup[]): Finding[] {
  const halves = backups
    .filter(({ running }) => !running)
    .map(({ location, reason }) => ({ path: location, reason: `Incomplete backup: ${reason}. Nothing uses it.` }));
  return [...leftovers, ...halves].map(({ path, reason }) => ({
    check: "leftovers",
    severity: "note",
    subject: path,
    message: reason,
  }));
}

/** Reports exposed paths: a user who can write a data folder or read a key file can act as its owner. */
export function permissionFindings(exposed: readonly ExposedPath[]): Finding[] {
  return exposed.slice(0, EXPOSED_SHOWN).map(({ path, problem, chmod }) => ({
    check: "permissions",
    severity: "problem",
    subject: path,
    message: `It ${problem}. Only its owner should have access.`,
    ...(chmod !== undefined && { command: `chmod ${chmod} ${shellWord(path)}` }),
  }));
}

/** Paths in one report; the rest appears when these are repaired. */
const EXPOSED_SHOWN = 20;

/** Reports databases on PostgreSQL, because this report does not include them. */
export function migratedFindings(migrated: readonly DatabaseName[]): Finding[] {
  if (migrated.length === 0) return [];
  const few = migrated.slice(0, 3).map(databaseLabel).join(", ");
  return [
    {
      check: "storage",
      severity: "note",
      subject: "PostgreSQL",
      message: `${few}${migrated.length > 3 ? ` and ${migrated.length - 3} more` : ""} are on PostgreSQL and were not checked.`,
      command: "cairn doctor --storage postgres://…",
    },
  ];
}

/** Reports unfinished migrations, during which the database refuses writes. */
export function migrationFindings(unfinished: readonly UnfinishedMigration[]): Finding[] {
  return unfinished.map(({ running, elsewhere, where, direction, startedAt, ...name }) => {
    const subject = databaseLabel(name);
    if (running) return { check: "migrations", severity: "note", subject, message: "It is being migrated now, so writes wait." };
    const { finish, undo } = migrationCommands(databaseFlags(name), where);
    const what =
      where === undefined ? "A migration" : `A migration ${direction === "up" ? "to" : "back from"} ${where}, started ${startedAt},`;
    const message = `${what} is unfinished and no process runs it: writes are refused.`;
    if (elsewhere)
      return { check: "migrations", severity: "problem", subject, message: `${message} Run cairn doctor on the machine that started it.` };
    const advice = finish === undefined ? "Undo it." : `Finish it, or undo it with: ${undo}`;
    return { check: "migrations", severity: "problem", subject, message: `${message} ${advice}`, command: finish ?? undo };
  });
}

const RUNS_MAX = 100;

/** Reports unfinished runs whose lease has expired. */
export async function leaseFindings(runs: RunCatalog, { staleLeaseSeconds }: DoctorSettings, now: string): Promise<Finding[]> {
  const latest = Date.parse(now) - staleLeaseSeconds * 1_000;
  let abandoned: Awaited<ReturnType<RunCatalog["listRuns"]>>;
  try {
    abandoned = await runs.listRuns({ abandoned: true, limit: RUNS_MAX });
  } catch (error) {
    if (error instanceof CairnError && (error.details?.damaged || isAbandoned(error))) return []; // reported by another check
    throw error;
  }
  const stale = abandoned.filter(({ leaseUntil, updatedAt }) => Date.parse(leaseUntil ?? updatedAt) < latest);
  if (stale.length === 0) return [];
  return [
    {
      check: "leases",
      severity: "problem",
      subject: "runs",
      message: `${stale.length}${abandoned.length === RUNS_MAX ? " or more" : ""} runs are marked as running, but no process holds their lease (${stale[0]!.runId}${stale.length > 1 ? ", …" : ""}). Recover them.`,
      command: "cairn run list --abandoned",
    },
  ];
}

/** Reports an embedding model that cannot be opened; records are stored without vectors then. */
export function embedderFindings(problem: string | undefined): Finding[] {
  if (problem === undefined) return [];
  return [{ check: "embeddings", severity: "problem", subject: "embedder", message: problem }];
}

/** Names the process that holds the model that others use. */
export function leaderFindings(leaders: readonly EmbeddingLeader[]): Finding[] {
  return leaders.map(({ model, pid }) => ({
    check: "embeddings",
    severity: "note",
    subject: model,
    message: `Process ${pid} embeds with this model for all processes of the data folder (embedder.share).`,
  }));
}

/** Reports collections with more records without a vector than allowed; keyword search alone finds these. */
export async function embeddingFindings(
  storage: Storage,
  projectIds: readonly string[],
  { embeddingBacklogMax }: DoctorSettings,
  visit: VisitOptions = {},
): Promise<Finding[]> {
  return visitDatabases<Finding>(projectIds, visit, async (projectId) => {
    const { records, parts } = await backlogOf(storage, projectId);
    if (records + parts <= embeddingBacklogMax) return [];
    const message = `${records} records${parts > 0 ? ` and ${parts} parts of long records` : ""} have no vector yet; limit ${embeddingBacklogMax}. Only keyword search finds them.`;
    return [{ check: "embeddings", severity: "problem", subject: subjectOf(projectId), message, command: "cairn embeddings upgrade" }];
  });
}

async function backlogOf(storage: Storage, projectId: string): Promise<{ readonly records: number; readonly parts: number }> {
  const missing = { records: 0, parts: 0 };
  try {
    const project = await storage.find(projectId);
    if (!project) return missing;
    const collections: readonly { readonly embeddings: EmbeddingStore }[] = [project.checkpoints, project.knowledge, project.code];
    for (const { embeddings } of collections) {
      const current = (await embeddings.versions()).find(({ isCurrent }) => isCurrent);
      if (!current) continue; // embedding is off
      const { records, vectors, parts, partVectors } = await embeddings.counts(current.versionId);
      missing.records += Math.max(0, records - vectors);
      missing.parts += Math.max(0, parts - partVectors);
    }
    return missing;
  } catch (error) {
    if (error instanceof CairnError && error.code === "unavailable") return { records: 0, parts: 0 }; // other checks report a damaged or newer database
    throw error;
  }
}
