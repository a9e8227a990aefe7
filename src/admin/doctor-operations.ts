import { z } from "zod";
import { DATABASE_KINDS, databaseLabel } from "../model/backup.ts";
import { TRIGGERS } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { megabytes } from "./triggers.ts";

const Trigger = z.object({
  name: z.enum(TRIGGERS),
  fired: z.boolean(),
  measured: z.number().optional(),
  limit: z.number(),
  message: z.string(),
});

const Finding = z.object({
  check: z.enum([
    "integrity",
    "records",
    "schema",
    "size",
    "disk",
    "leftovers",
    "leases",
    "embeddings",
    "snapshots",
    "recovery",
    "migrations",
    "storage",
    "permissions",
    "configuration",
  ]),
  severity: z.enum(["problem", "note"]),
  subject: z.string(),
  message: z.string(),
  command: z.string().optional(),
});

export const doctorExamine = operation({
  name: "doctor",
  summary: "Say whether a system has outgrown its SQLite file, and whether every database is sound.",
  description:
    "Measures processes, write rate, size, and how long a restore takes (by a trial restore), against the settings under doctor. Ends with exit code 11 when something deserves attention.",
  input: z.strictObject({
    quick: z.boolean().default(false).describe("Without reading whole databases and without a trial restore."),
    repair: z
      .boolean()
      .default(false)
      .describe("Move damaged records to the table quarantined_records, with their raw content, and build derived data again."),
  }),
  output: z.object({
    healthy: z.boolean(),
    checked_at: z.iso.datetime(),
    versions: z.object({ cairn: z.string(), node: z.string(), database: z.string() }),
    databases: z.array(z.object({ kind: z.enum(DATABASE_KINDS), id: z.string(), location: z.string(), bytes: z.int() })),
    systems: z.array(z.object({ system_id: z.string(), location: z.string(), triggers: z.array(Trigger), command: z.string().optional() })),
    findings: z.array(Finding),
    repairs: z
      .array(
        z.object({
          subject: z.string(),
          quarantined: z.array(z.object({ collection: z.string(), id: z.string(), reason: z.string() })),
          rebuilt: z.array(z.string()),
        }),
      )
      .optional()
      .describe("What repair did; absent without it."),
    checks: z.array(z.string()),
  }),
  access: "admin",
  limits: { timeoutMs: LIMITS.backupTimeoutMs },
  toolset: "admin",
  http: { method: "POST", path: "/v1/doctor" },
  cli: {
    examples: [
      "cairn doctor",
      "cairn doctor --quick --json",
      "cairn doctor --repair",
      "cairn doctor --set doctor.size_max_bytes=500000000",
    ],
    attention: ({ healthy }) => healthy === false,
  },
  render: ({ healthy, versions, databases, systems, findings, repairs, checks }) =>
    [
      `cairn ${versions.cairn}, node ${versions.node}, ${versions.database}`,
      ...databases.map((one) => `  ${databaseLabel(one)}: ${megabytes(one.bytes)}`),
      `Looked at: ${checks.join(", ")}`,
      ...systems.flatMap(({ system_id, triggers, command }) => [
        `System ${system_id}`,
        ...triggers.map(({ name, fired, message }) => `  ${fired ? "FIRED" : "ok   "}  ${name}: ${message}`),
        ...(command === undefined ? [] : [`         ${command}`]),
      ]),
      ...(repairs ?? []).flatMap(({ subject, quarantined, rebuilt }) => [
        ...quarantined.map(({ collection, id, reason }) => `repaired  ${subject}: ${collection} ${id} was set aside (${reason})`),
        ...rebuilt.map((part) => `repaired  ${subject}: ${part} was built again`),
      ]),
      ...findings.flatMap(({ severity, subject, message, command }) => [
        `${severity === "problem" ? "PROBLEM" : "note"}  ${subject}: ${message}`,
        ...(command === undefined ? [] : [`         ${command}`]),
      ]),
      healthy ? "Nothing needs attention." : "Something needs attention.",
    ].join("\n"),
  async run(cairn, { quick, repair }, { allProjects, signal, progress }) {
    if (!allProjects) throw new CairnError("forbidden", "This concerns every project, so it needs an admin key for all projects.");
    if (quick && repair)
      throw new CairnError("invalid_input", "repair: cannot be combined with quick, because a repair reads whole databases.");
    return cairn.doctor.examine({ quick, repair, signal, progress });
  },
});
