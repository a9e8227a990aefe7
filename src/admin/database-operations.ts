import { z } from "zod";
import type { DatabaseReport } from "../model/database-report.ts";
import { LIMITS } from "../model/limits.ts";
import { resolveScope } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { PlaceFields } from "../operations/write-schemas.ts";

export const databaseCheck = operation({
  name: "database_check",
  summary: "Read the whole database of a project and report damage.",
  input: z.strictObject(PlaceFields),
  output: z.object({
    project_path: z.string(),
    location: z.string(),
    state: z.enum(["absent", "sound", "damaged"]),
    problems: z.array(z.string()).describe("Problems of the file or schema: restore a backup."),
    damaged: z
      .array(z.object({ collection: z.string(), id: z.string(), reason: z.string() }))
      .describe("Records that do not match their checksums."),
    stale: z.array(z.string()).describe("Derived data that does not match the records."),
    quarantined: z.int().describe("Records that earlier repairs quarantined."),
    code_index: z
      .object({ location: z.string(), problems: z.array(z.string()) })
      .optional()
      .describe("The file of the code index. It is derived: cairn code index rebuilds it."),
  }),
  access: "admin",
  annotations: { readOnly: true },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "none",
  cli: {
    examples: ["cairn database check", "cairn database check --scope shared --json"],
    attention: ({ state, code_index }) => state === "damaged" || isDamaged(code_index),
  },
  render: ({ location, state, problems, damaged, stale, quarantined, code_index: code }) =>
    [
      `${location}: ${state}`,
      ...problems.map((problem) => `  ${problem}`),
      ...damaged.map(({ collection, id, reason }) => `  ${collection} ${id}: ${reason}`),
      ...stale.map((problem) => `  ${problem}`),
      ...(damaged.length + stale.length > 0 ? ["Quarantine damaged records and rebuild derived data with: cairn doctor --repair"] : []),
      ...(quarantined > 0 ? [`${quarantined} damaged records are quarantined.`] : []),
      ...(code
        ? [`${code.location}: ${code.problems.length > 0 ? "damaged" : "sound"}`, ...code.problems.map((problem) => `  ${problem}`)]
        : []),
      ...(code && code.problems.length > 0 ? ["Rebuild the code index with: cairn code index"] : []),
    ].join("\n"),
  run: async (cairn, input, { mayTouch }) => cairn.databases.check(resolveScope(input, mayTouch)),
});

const isDamaged = (codeIndex: unknown) => ((codeIndex as DatabaseReport["codeIndex"])?.problems.length ?? 0) > 0;

export const databaseQuarantine = operation({
  name: "database_quarantine",
  summary: "Quarantine the damaged database of a project with a report, so that a backup can be restored or a new database created.",
  input: z.strictObject({
    ...PlaceFields,
    even_if_sound: z.boolean().default(false).describe("Quarantine it although it is not damaged."),
  }),
  output: z.object({ project_path: z.string(), location: z.string(), moved_to: z.string(), problems: z.array(z.string()) }),
  access: "admin",
  annotations: { destructive: true, idempotent: false },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "none",
  cli: { examples: ["cairn database quarantine"] },
  render: ({ location, moved_to }) => `${location} is now ${moved_to}. Nothing was deleted; the next save creates a new database.`,
  run: async (cairn, input, { mayTouch }) => cairn.databases.quarantine(resolveScope(input, mayTouch)),
});

export const databaseOperations = [databaseCheck, databaseQuarantine];
