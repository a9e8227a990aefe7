import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectId, text } from "../operations/schemas.ts";

export const projectMerge = operation({
  name: "project_merge",
  summary: "Move all checkpoints and knowledge of one project into another.",
  description:
    "Joins a project that was stored under an old path. Records keep their ids, times and counts. The code index of the old path is deleted. An interrupted call can be repeated.",
  input: z.strictObject({
    from: text(LIMITS.projectPathChars, 1).describe("The stored project, as project_list shows it."),
    into: ProjectId.optional().describe(
      "The project that receives the records. On the machine of the folder, default: the repository of from.",
    ),
    dry_run: z.boolean().default(false).describe("Only report what would be moved."),
    keep_code: z.boolean().default(false).describe("Keep the code index of from. Set by the client for a linked git worktree."),
  }),
  output: z.object({
    from: z.string(),
    into: z.string(),
    dry_run: z.boolean(),
    checkpoints: z.int().describe("Checkpoints moved."),
    knowledge: z.int().describe("Knowledge records moved."),
    deleted: z.int().describe("Deleted records moved; they can still be restored."),
    code_files: z.int().describe("Files removed from the code index of from."),
    renamed: z
      .array(z.object({ id: z.string(), new_id: z.string() }))
      .describe("Records moved under a new id, because another record of the project has theirs."),
    kept: z.int().describe("Records that stay in from."),
    problems: z.array(z.string()),
    removed: z.boolean().describe("The emptied database of from was set aside."),
  }),
  access: "admin",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "admin",
  cli: {
    positional: ["from"],
    examples: ["cairn project merge /home/me/app/packages/api --dry-run", "cairn project merge /home/me/old-app --into /home/me/app"],
    attention: ({ kept }) => (kept as number) > 0,
    cancelled: "Every record is in one of the projects. Repeat the command to move the rest.",
  },
  render: ({ from, into, dry_run, checkpoints, knowledge, deleted, code_files, renamed, kept, problems, removed }) =>
    [
      `${dry_run ? "Would move" : "Moved"} ${count(checkpoints, "checkpoint")} and ${count(knowledge, "knowledge record")} from ${from} into ${into}.`,
      deleted > 0 && `${dry_run ? "Would also move" : "Also moved"} ${count(deleted, "deleted record")}.`,
      code_files > 0 &&
        `The code index of ${from} (${count(code_files, "file")}) ${dry_run ? "would be" : "was"} deleted. Build that of the project with: cairn code index`,
      ...renamed.map(({ id, new_id }) => `  ${id} is now ${new_id}: the project has another record with that id.`),
      kept > 0 && `${count(kept, "record")} stayed in ${from}:`,
      ...problems.map((problem) => `  ${problem}`),
      removed && `The emptied database of ${from} was set aside.`,
    ]
      .filter(Boolean)
      .join("\n"),
  async run(cairn, { from, into, dryRun, keepCode }, { mayTouch, signal, progress }) {
    if (into === undefined) throw new CairnError("invalid_input", "into: name the project that receives the records.");
    if (!mayTouch(from) || !mayTouch(into))
      throw new CairnError("forbidden", "This key is not valid for both projects. Use a key of both.");
    return cairn.transfer.merge({ from, into, dryRun, keepCode }, { signal, progress: (done) => progress(done, undefined) });
  },
});

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
