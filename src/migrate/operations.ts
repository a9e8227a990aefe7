import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { onlyForAllProjects, SelectionFields, selectionOf } from "../operations/database-selection.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import { assertAllowedTarget } from "./remote-target.ts";

const migrate = operation({
  name: "migrate",
  summary: "Move a project's database, or others, to PostgreSQL or back: copied, verified, then switched, while others go on working.",
  description:
    "Writes are paused by the database itself until the copy is verified by counts and digests; then every process continues where the data is now. It can be stopped at any point and run again. The source is archived, never deleted. An API key must be for all projects, and the host among migrate.allowed_hosts.",
  input: z.strictObject({
    to: text(LIMITS.urlChars, 1).optional().describe('A postgres:// URL, or "sqlite" for the way back.'),
    ...SelectionFields,
    dry_run: z.boolean().default(false).describe("Check everything and change nothing."),
    rollback: z.boolean().default(false).describe("Undo a move that is unfinished, or one after which nothing was written. Needs no to."),
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
    examples: [
      "cairn migrate --to postgres://cairn@db.example.com/cairn --dry-run",
      "cairn migrate --to postgres://cairn@db.example.com/cairn --all",
      "cairn migrate --rollback",
      "cairn migrate --to sqlite",
    ],
  },
  render: ({ databases }) => databases.map(lineOf).join("\n") || "There is nothing to move.",
  run: async (cairn, { to, dryRun, rollback, ...input }, context) => {
    if (rollback && to !== undefined) throw new CairnError("invalid_input", "to: a rollback knows where to go. Leave it out.");
    const { signal, progress, keyId } = context;
    if (keyId !== undefined) {
      onlyForAllProjects(context);
      if (to !== undefined && to !== "sqlite") assertAllowedTarget(to, cairn.migrations.allowedHosts);
    }
    return cairn.migrations.migrate({ to, dryRun, rollback, which: selectionOf(input, context), signal, progress });
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
      return `${name} can move from ${from} to ${to}: ${rows} rows in ${tables.length} tables. Nothing was changed.`;
    case "unchanged":
      return `${name} is in ${to} already.`;
    case "rolled_back":
      return `${name} is where it was before the move.${archive ? ` The copy is kept as ${archive}.` : ""}`;
    case "migrated":
      return `${name} is in ${to} now: ${rows} rows in ${tables.length} tables, verified. The source is kept as ${archive}.`;
  }
}
