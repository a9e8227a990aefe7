import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { assertAllProjects, SelectionFields, selectionOf } from "../operations/database-selection.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import { assertAllowedTarget } from "./remote-target.ts";

const migrate = operation({
  name: "migrate",
  summary: "Migrate one or more databases to PostgreSQL or back to SQLite, while they are in use.",
  description:
    "A fence in the database pauses writes until row counts and digests of the copy are verified; then every process uses the new database. A migration can be interrupted at any point and run again. The source is archived, never deleted. An API key must be for all projects, and the host must be in migrate.allowed_hosts.",
  input: z.strictObject({
    to: text(LIMITS.urlChars, 1).optional().describe('A postgres:// URL, or "sqlite" to migrate back.'),
    ...SelectionFields,
    dry_run: z.boolean().default(false).describe("Run all checks without changes."),
    rollback: z
      .boolean()
      .default(false)
      .describe("Undo a migration that is unfinished, or after which nothing was written. Cannot be combined with a target."),
    without_deleted: z.boolean().default(false).describe("Leave deleted records behind, in the archived source."),
  }),
  output: z.object({
    databases: z.array(
      z.object({
        name: z.string(),
        outcome: z.enum(["planned", "migrated", "rolled_back", "unchanged"]),
        from: z.string(),
        to: z.string(),
        rows: z.int(),
        tables: z.array(z.object({ table: z.string(), rows: z.int(), digest: z.string() })),
        archive: z.string().optional(),
      }),
    ),
  }),
  access: "admin",
  limits: { timeoutMs: LIMITS.migrateTimeoutMs },
  toolset: "none",
  http: { method: "POST", path: "/v1/migrate" },
  cli: {
    storedProject: true,
    examples: [
      "cairn migrate --to postgres://cairn@db.example.com/cairn --dry-run",
      "cairn migrate --to postgres://cairn@db.example.com/cairn --all",
      "cairn migrate --rollback",
      "cairn migrate --to sqlite",
    ],
  },
  render: ({ databases }) => databases.map(lineOf).join("\n") || "There is nothing to migrate.",
  run: async (cairn, { to, dryRun, rollback, withoutDeleted, ...input }, context) => {
    if (rollback && to !== undefined) throw new CairnError("invalid_input", "to: cannot be combined with rollback.");
    const { signal, progress, keyId } = context;
    if (keyId !== undefined) {
      assertAllProjects(context);
      if (to !== undefined && to !== "sqlite") assertAllowedTarget(to, cairn.migrations.allowedHosts);
    }
    return cairn.migrations.migrate({ to, dryRun, rollback, withoutDeleted, which: selectionOf(input, context), signal, progress });
  },
});

export const migrateOperations = [migrate];

interface Line {
  readonly name: string;
  readonly outcome: "planned" | "migrated" | "rolled_back" | "unchanged";
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly tables: readonly unknown[];
  readonly archive?: string | undefined;
}

function lineOf({ name, outcome, from, to, rows, tables, archive }: Line): string {
  switch (outcome) {
    case "planned":
      return `${name} can be migrated from ${from} to ${to}: ${rows} rows in ${tables.length} tables. Nothing was changed.`;
    case "unchanged":
      return from === to ? `${name} was deleted in ${from}. There was nothing to migrate.` : `${name} is already in ${to}.`;
    case "rolled_back":
      return `The migration of ${name} was rolled back.${archive ? ` The copy is kept as ${archive}.` : ""}`;
    case "migrated":
      return `${name} was migrated to ${to}: ${rows} rows in ${tables.length} tables, verified. The source is archived as ${archive}.`;
  }
}
