import { z } from "zod";
import { type Backup, DATABASE_KINDS, type DatabaseName, databaseLabel, VERIFY_LEVELS } from "../model/backup.ts";
import { LIMITS } from "../model/limits.ts";
import { onlyForAllProjects, SelectionFields, selectionOf } from "../operations/database-selection.ts";
import { type CallContext, operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";

const Kind = z.enum(DATABASE_KINDS);

const BackupId = text(LIMITS.idChars, 1).optional().describe("Id of the backup. Default: the newest that fits.");

const Database = z.object({ kind: Kind, id: z.string() });

const BackupOutput = z.object({
  id: z.string(),
  location: z.string(),
  created_at: z.iso.datetime(),
  bytes: z.int(),
  databases: z.array(Database.extend({ file: z.string(), bytes: z.int(), rows: z.int(), sha256: z.string() })),
  failed: z.array(Database.extend({ reason: z.string() })).describe("Databases that could not be backed up, and why."),
  on_postgres: z.array(Database).optional().describe("When all were asked for: databases that are on PostgreSQL, and so not in it."),
});

/** Where backups are kept is decided on the machine that keeps them, never by a caller from elsewhere. */
const folderFlag = (name: string) => ({ [name]: { setting: "backup.dir", placeholder: "folder", description: "Folder of the backups." } });

export const backupCreate = operation({
  name: "backup",
  summary: "Back up a project's database, or others, while they are in use; the copy is verified.",
  description: "A backup is there whole or not at all. It is kept in the folder that the setting backup.dir names.",
  input: z.strictObject({
    ...SelectionFields,
    with_code: z.boolean().default(false).describe("Back up the code indexes too. Without them, cairn code index builds them again."),
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
  },
  render: (backup) =>
    [`${backup.id}: ${summaryOf(backup)} in ${backup.location}`, ...backup.failed.map(failureLine), ...awayLine(backup)].join("\n"),
  async run(cairn, input, context) {
    return shown(await cairn.backups.create(selectionOf(input, context), { ...context, withCode: input.withCode }), context);
  },
});

export const backupList = operation({
  name: "backup_list",
  summary: "List the backups that are whole, newest first.",
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
    const all = (await cairn.backups.list()).map((backup) => shown(backup, context)).filter(({ databases }) => databases.length > 0);
    return { backups: all.slice(0, limit), total: all.length };
  },
});

export const backupVerify = operation({
  name: "backup_verify",
  summary: "Look through a backup: rows counted, structure checked, checksums compared, or every value read.",
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
    onlyForAllProjects(context);
    return cairn.backups.verify({ id, level, ...context });
  },
});

export const restore = operation({
  name: "restore",
  summary: "Put a backup in the place of a database, verified first. Refused while others use the database.",
  description: "A database that is there is only replaced with overwrite, in one step, and is kept aside.",
  input: z.strictObject({
    id: BackupId,
    ...SelectionFields,
    overwrite: z.boolean().default(false).describe("Put it in the place of a database that is there. That one is kept aside."),
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
          `${databaseLabel(one)} is now as in ${id}.${one.replaced ? ` What was there is kept: ${one.replaced}` : ""}${one.has_code_index === false ? " It has no code index: run cairn code index." : ""}`,
      )
      .join("\n"),
  run: async (cairn, { id, overwrite, ...input }, context) =>
    cairn.backups.restore({ id, overwrite, which: selectionOf(input, context), ...context }),
});

export const backupOperations = [backupCreate, backupList, backupVerify, restore];

/** What this caller may know of a backup: only its own projects. */
function shown({ databases, failed, onPostgres, ...backup }: Backup, { mayTouch, allProjects }: CallContext) {
  const mine = ({ kind, id }: DatabaseName) =>
    allProjects || ((kind === "project" || kind === "code" || kind === "shared") && mayTouch(id));
  const visible = databases
    .filter(mine)
    .map(({ tables, ...entry }) => ({ ...entry, rows: tables.reduce((sum, { rows }) => sum + rows, 0) }));
  return {
    ...backup,
    databases: visible,
    failed: failed.filter(mine),
    onPostgres: onPostgres?.filter(mine),
    bytes: visible.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

interface Summarised {
  readonly databases: readonly unknown[];
  readonly bytes: number;
}

function summaryOf({ databases, bytes }: Summarised): string {
  return `${databases.length} database${databases.length === 1 ? "" : "s"}, ${(bytes / 1e6).toFixed(1)} MB`;
}

function failureLine(failure: DatabaseName & { readonly reason: string }): string {
  return `  NOT backed up: ${databaseLabel(failure)}: ${failure.reason}`;
}

function awayLine({ on_postgres: away = [] }: { readonly on_postgres?: readonly DatabaseName[] | undefined }): string[] {
  return away.length === 0
    ? []
    : [`  Not in it, since they are on PostgreSQL (back up with pg_dump): ${away.map(databaseLabel).join(", ")}`];
}

function labels(databases: readonly DatabaseName[]): string {
  const few = databases.slice(0, 3).map(databaseLabel).join(", ");
  return databases.length > 3 ? `${few}, …` : few;
}
