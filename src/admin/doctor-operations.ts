import { z } from "zod";
import { DATABASE_KINDS, databaseLabel } from "../model/backup.ts";
import { HEALTH_CHECKS, TRIGGERS } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { assertAllProjects } from "../operations/database-selection.ts";
import { operation } from "../operations/operation.ts";
import { megabytes } from "../text/megabytes.ts";

const Trigger = z.object({
  name: z.enum(TRIGGERS),
  fired: z.boolean(),
  measured: z.number().optional(),
  limit: z.number(),
  message: z.string(),
});

const Finding = z.object({
  check: z.enum(HEALTH_CHECKS),
  severity: z.enum(["problem", "note"]),
  subject: z.string(),
  message: z.string(),
  command: z.string().optional(),
});

export const doctorExamine = operation({
  name: "doctor",
  summary: "Check whether a system has outgrown its SQLite file, and whether every database is intact.",
  description:
    "Compares processes, write rate, size and the time of a trial restore with the settings under doctor. The CLI exits with code 11 when something needs attention.",
  input: z.strictObject({
    quick: z.boolean().default(false).describe("Omit the checks that read whole databases, and the trial restore."),
    repair: z
      .boolean()
      .default(false)
      .describe("Quarantine damaged records in the table quarantined_records, with their raw content, and rebuild derived data."),
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
      .describe("The changes of a repair; absent without repair."),
    partial: z.boolean().describe("True if some databases were not checked for lack of time."),
    checks: z.array(z.enum(HEALTH_CHECKS)),
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
      `Checked: ${checks.join(", ")}`,
      ...systems.flatMap(({ system_id, triggers, command }) => [
        `System ${system_id}`,
        ...triggers.map(({ name, fired, message }) => `  ${fired ? "FIRED" : "ok   "}  ${name}: ${message}`),
        ...(command === undefined ? [] : [`         ${command}`]),
      ]),
      ...(repairs ?? []).flatMap(({ subject, quarantined, rebuilt }) => [
        ...quarantined.map(({ collection, id, reason }) => `repaired  ${subject}: ${collection} ${id} was quarantined (${reason})`),
        ...rebuilt.map((part) => `repaired  ${subject}: ${part} was rebuilt`),
      ]),
      ...findings.flatMap(({ severity, subject, message, command }) => [
        `${severity === "problem" ? "PROBLEM" : "note"}  ${subject}: ${message}`,
        ...(command === undefined ? [] : [`         ${command}`]),
      ]),
      healthy ? "Nothing needs attention." : "Something needs attention.",
    ].join("\n"),
  async run(cairn, { quick, repair }, { allProjects, signal, progress }) {
    assertAllProjects({ allProjects });
    if (quick && repair)
      throw new CairnError("invalid_input", "repair: cannot be combined with quick, because a repair reads whole databases.");
    return cairn.doctor.examine({ quick, repair, signal, progress });
  },
});
