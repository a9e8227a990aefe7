import { z } from "zod";
import { type Backup, DATABASE_KINDS, type DatabaseName, databaseLabel, VERIFY_LEVELS } from "../model/backup.ts";
import { LIMITS } from "../model/limits.ts";
import { assertAllProjects, SelectionFields, selectionOf } from "../operations/database-selection.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import { megabytes } from "../text/megabytes.ts";

const BackupId = text(LIMITS.idChars, 1).optional().describe("Id of the backup. Default: the newest with this database.");

const Database = z.object({ kind: z.enum(DATABASE_KINDS), id: z.string() });

const BackupOutput = z.object({
  id: z.string(),
  location: z.string(),
  created_at: z.iso.datetime(),
  bytes: z.int(),
  databases: z.array(Database.extend({ file: z.string(), bytes: z.int(), rows: z.int(), sha256: z.string() })),
  failed: z.array(Database.extend({ reason: z.string() })).describe("Databases that could not be backed up, and why."),
  on_postgres: z.array(Database).optional().describe("With all: databases on PostgreSQL, which are not included."),
});

/** The flag is local: a remote caller never decides where backups are stored. */
const folderFlag = (name: string) => ({ [name]: { setting: "backup.dir", placeholder: "folder", description: "Folder of the backups." } });

export const backupCreate = operation({
  name: "backup",
  summary: "Back up one or more databases while they are in use, and verify the copies.",
  description: "A backup is complete or absent. It is stored in the folder of the setting backup.dir.",
  input: z.strictObject({
    ...SelectionFields,
    with_code: z
      .boolean()
      .default(false)
      .describe("Back up the code indexes too. Otherwise cairn code index rebuilds them after a restore."),
  }),
  output: BackupOutput,
  access: "admin",
  annotations: { idempotent: false },
  limits: { timeoutMs: LIMITS.backupTimeoutMs },
  toolset: "none",
  http: { method: "POST", path: "/v1/backup", status: 201 },
  cli: {
    settings: folderFlag("to"),
    examples: ["cairn backup", "cairn backup --all --to /mnt/backups", "cairn backup --with-code", "cairn backup --runs"],
    attention: ({ failed }) => (failed as readonly unknown[]).length > 0,
    cancelled: "No backup was made; earlier backups are unchanged.",
  },
  render: (backup) =>
    [`${backup.id}: ${summaryOf(backup)} in ${backup.location}`, ...backup.failed.map(failureLine), ...postgresLine(backup)].join("\n"),
  async run(cairn, input, context) {
    return toOutput(await cairn.backups.create(selectionOf(input, context), { ...context, withCode: input.withCode }), context);
  },
});

export const backupList = operation({
  name: "backup_list",
  summary: "List complete backups, newest first.",
  input: z.strictObject({ limit: z.int().min(1).max(LIMITS.listMax).default(20) }),
  output: z.object({ backups: z.array(BackupOutput), total: z.int() }),
  access: "admin",
  annotations: { readOnly: true },
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "none",
  http: { method: "GET", path: "/v1/backup/list" },
  cli: { settings: folderFlag("from"), examples: ["cairn backup list", "cairn backup list --from /mnt/backups --json"] },
  render: ({ backups, total }) =>
    [
      ...(total === 0 ? ["There are no backups."] : []),
      ...backups.map((backup) => `${backup.id}  ${summaryOf(backup)}  ${labels(backup.databases)}`),
      ...(total > backups.length ? [`${backups.length} of ${total}`] : []),
    ].join("\n"),
  async run(cairn, { limit }, context) {
    const all = (await cairn.backups.list()).map((backup) => toOutput(backup, context)).filter(({ databases }) => databases.length > 0);
    return { backups: all.slice(0, limit), total: all.length };
  },
});

export const backupVerify = operation({
  name: "backup_verify",
  summary: "Verify a backup: count its rows, check its structure, compare its checksums, or read every value.",
  input: z.strictObject({
    id: BackupId,
    level: z
      .enum(VERIFY_LEVELS)
      .default("checksum")
      .describe("count: rows; integrity: structure and foreign keys too; checksum: every byte too; full: every value too."),
  }),
  output: z.object({
    id: z.string(),
    location: z.string(),
    level: z.enum(VERIFY_LEVELS),
    sound: z.boolean(),
    databases: z.array(Database.extend({ file: z.string(), rows: z.int(), problems: z.array(z.string()), damaged: z.array(z.string()) })),
  }),
  access: "admin",
  annotations: { readOnly: true },
  limits: { timeoutMs: LIMITS.backupTimeoutMs },
  toolset: "none",
  cli: {
    positional: ["id"],
    settings: folderFlag("from"),
    examples: ["cairn backup verify", "cairn backup verify 20261115T220000Z-0f3a9c27 --level full"],
    attention: ({ sound }) => sound === false,
  },
  render: ({ id, level, sound, databases }) =>
    [
      `${id}: ${sound ? "sound" : "DAMAGED"} (${level})`,
      ...databases.map((one) => `  ${databaseLabel(one)}: ${one.problems.length > 0 ? one.problems.join("; ") : `${one.rows} rows`}`),
      ...databases.flatMap((one) => one.damaged.map((record) => `  ${databaseLabel(one)}: damaged when it was backed up: ${record}`)),
    ].join("\n"),
  async run(cairn, { id, level }, context) {
    assertAllProjects(context);
    return cairn.backups.verify({ id, level, ...context });
  },
});

export const restore = operation({
  name: "restore",
  summary: "Restore a database from a backup, which is verified first. Refused while other processes use the database.",
  description: "An existing database is replaced only with overwrite, atomically, and is kept.",
  input: z.strictObject({
    id: BackupId,
    ...SelectionFields,
    overwrite: z.boolean().default(false).describe("Replace an existing database, which is kept."),
  }),
  output: z.object({
    id: z.string(),
    databases: z.array(
      Database.extend({
        location: z.string(),
        replaced: z.string().optional(),
        has_code_index: z.boolean().optional().describe("Of a project: whether it has a code index now."),
      }),
    ),
  }),
  access: "admin",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.backupTimeoutMs },
  toolset: "none",
  http: { method: "POST", path: "/v1/restore" },
  cli: {
    positional: ["id"],
    settings: folderFlag("from"),
    examples: ["cairn restore", "cairn restore 20261115T220000Z-0f3a9c27 --overwrite", "cairn restore --all --from /mnt/backups"],
  },
  render: ({ id, databases }) =>
    databases
      .map(
        (one) =>
          `${databaseLabel(one)} is now as in ${id}.${one.replaced ? ` The replaced database is kept: ${one.replaced}` : ""}${one.has_code_index === false ? " It has no code index: run cairn code index." : ""}`,
      )
      .join("\n"),
  run: async (cairn, { id, overwrite, ...input }, context) =>
    cairn.backups.restore({ id, overwrite, which: selectionOf(input, context), ...context }),
});

export const backupOperations = [backupCreate, backupList, backupVerify, restore];

/** Returns the part of a backup that the caller may see: its own projects. */
function toOutput({ databases, failed, onPostgres, ...backup }: Backup, { mayTouch, allProjects }: CallContext) {
  const isVisible = ({ kind, id }: DatabaseName) =>
    allProjects || ((kind === "project" || kind === "code" || kind === "shared") && mayTouch(id));
  const visible = databases
    .filter(isVisible)
    .map(({ tables, ...entry }) => ({ ...entry, rows: tables.reduce((sum, { rows }) => sum + rows, 0) }));
  return {
    ...backup,
    databases: visible,
    failed: failed.filter(isVisible),
    onPostgres: onPostgres?.filter(isVisible),
    bytes: visible.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

interface Summarised {
  readonly databases: readonly unknown[];
  readonly bytes: number;
}

function summaryOf({ databases, bytes }: Summarised): string {
  return `${databases.length} database${databases.length === 1 ? "" : "s"}, ${megabytes(bytes)}`;
}

function failureLine(failure: DatabaseName & { readonly reason: string }): string {
  return `  NOT backed up: ${databaseLabel(failure)}: ${failure.reason}`;
}

function postgresLine({ on_postgres: migrated = [] }: { readonly on_postgres?: readonly DatabaseName[] | undefined }): string[] {
  return migrated.length === 0
    ? []
    : [`  Not included, because they are on PostgreSQL (back up with pg_dump): ${migrated.map(databaseLabel).join(", ")}`];
}

function labels(databases: readonly DatabaseName[]): string {
  const few = databases.slice(0, 3).map(databaseLabel).join(", ");
  return databases.length > 3 ? `${few}, …` : few;
}
