import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { MaxTokens, text } from "../operations/schemas.ts";
import { OLDER_THAN_FORMS, OlderThan } from "../operations/write-schemas.ts";
import { recordTokens, withinBudget } from "../text/estimate-tokens.ts";
import { shellWord } from "../text/shell-word.ts";
import { drawRun, type RunAnswer } from "./draw-run.ts";
import { oneLine } from "./drawing.ts";
import { fitRun } from "./fit.ts";
import { inspectionOperations } from "./inspection-operations.ts";
import { requestOperations } from "./request-operations.ts";
import { readableJson } from "./state-json.ts";
import { LISTENING, maySee, present, RunId, RunOutput, Status, StepOutput } from "./wire-schemas.ts";

export const runList = operation({
  name: "run_list",
  summary: "List durable runs, most recently updated first.",
  input: z.strictObject({
    status: Status.optional(),
    graph: text(LIMITS.runKeyChars, 1).optional().describe("Only runs of the graph with this name."),
    project: text(LIMITS.projectPathChars, 1).optional().describe("Only runs of this project."),
    abandoned: z.boolean().default(false).describe("Only runs whose process ended."),
    limit: z.int().min(1).max(LIMITS.listMax).default(20),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the page before."),
  }),
  output: z.object({ runs: z.array(RunOutput), next_cursor: z.string().optional(), note: z.string().optional() }),
  access: "read",
  toolset: "runs",
  mcp: {
    compact: ({ runs, ...rest }) => ({
      runs: runs.map(({ run_id, status, graph, updated_at, reason }) => ({
        run_id,
        status,
        graph,
        updated_at,
        reason: reason && oneLine(reason),
      })),
      ...rest,
    }),
    rows: "runs",
  },
  cli: {
    examples: ["cairn run list", "cairn run list --status paused", "cairn run list --abandoned --json"],
    view: {
      table: "runs",
      columns: ["run_id", "status", "graph", "last_sequence", "updated_at", "reason"],
      optional: ["last_sequence", "graph"],
    },
  },
  render: ({ runs, next_cursor, note }) =>
    [
      runs.length === 0 ? "No runs." : `${runs.length} runs`,
      ...runs.map((run) => `${run.run_id}  ${run.status}  ${run.graph}  ${run.updated_at}${run.reason ? `  ${oneLine(run.reason)}` : ""}`),
      next_cursor ? `More: call again with cursor ${next_cursor}` : "",
      note ?? "",
    ]
      .filter(Boolean)
      .join("\n"),
  run: async (cairn, input, context) => present(await cairn.runs.list(input, maySee(context))),
});

export const runGet = operation({
  name: "run_get",
  summary: "Show one run: its status and its path through the graph.",
  input: z.strictObject({
    run_id: RunId,
    sequence: z.int().min(1).optional().describe("Show the run at this checkpoint."),
    include_state: z.boolean().default(false).describe("Include the state as JSON."),
    max_tokens: MaxTokens,
  }),
  output: z.object({
    run: RunOutput,
    checkpoints: z.int().describe("Stored checkpoints; last_sequence also counts deleted ones."),
    steps: z.array(StepOutput),
    truncated: z.boolean(),
    questions: z
      .array(
        z.object({
          sequence: z.int(),
          node: z.string(),
          branch: z.string(),
          question_json: z.string(),
          asked_at: z.iso.datetime(),
        }),
      )
      .describe("What the run waits for. Answer with run_answer."),
    workers: z.object(LISTENING).optional().describe("Whether a worker continues the run."),
    state_json: z.string().optional(),
    note: z.string().optional(),
  }),
  access: "read",
  toolset: "runs",
  cli: {
    positional: ["run_id"],
    examples: ["cairn run get nightly-42", "cairn run get nightly-42 --sequence 7 --include-state"],
    text: (found) =>
      drawRun(found as RunAnswer, {
        history: "cairn run history",
        answer: (id) => `Answer it: cairn run answer ${shellWord(id)} <answer>`,
      }),
  },
  render: (found) => drawRun(found as RunAnswer, { history: "see run_history", answer: () => "Answer with run_answer." }),
  async run(cairn, { maxTokens, ...input }, context) {
    const { questions, ...found } = fitRun(await cairn.runs.get(input, maySee(context)), maxTokens);
    const asked = questions.map(({ question, ...rest }) => ({
      ...rest,
      questionJson: readableJson(question ?? null).slice(0, QUESTION_SHOWN),
    }));
    return present({ ...found, questions: asked });
  },
});

/** Characters of a question in the answer. A longer one is in the note of its checkpoint. */
const QUESTION_SHOWN = 4_000;

export const runHistory = operation({
  name: "run_history",
  summary: "List a run's checkpoints, newest first.",
  input: z.strictObject({
    run_id: RunId,
    limit: z.int().min(1).max(LIMITS.listMax).default(50),
    before: z.int().min(1).optional().describe("next_before of the page before."),
    max_tokens: MaxTokens,
  }),
  output: z.object({ checkpoints: z.array(StepOutput), next_before: z.int().optional() }),
  access: "read",
  toolset: "runs",
  cli: {
    positional: ["run_id"],
    examples: ["cairn run history nightly-42"],
    view: {
      table: "checkpoints",
      columns: ["sequence", "node_id", "kind", "branch", "attempt", "next_node", "size", "timestamp"],
      optional: ["size", "attempt", "branch"],
    },
  },
  render: ({ checkpoints, next_before }) =>
    [
      ...checkpoints.map(
        ({ sequence, timestamp, kind, node_id, branch, next_node }) =>
          `${sequence}  ${timestamp}  ${kind} ${node_id}${branch ? ` [${branch}]` : ""}${next_node ? ` → ${next_node}` : ""}`,
      ),
      next_before ? `More: call again with before ${next_before}` : "",
    ]
      .filter(Boolean)
      .join("\n") || "No checkpoints.",
  async run(cairn, { maxTokens, ...input }, context) {
    const { checkpoints, nextBefore } = await cairn.runs.history(input, maySee(context));
    const fitting = withinBudget(checkpoints, maxTokens, recordTokens);
    return present({ checkpoints: fitting, nextBefore: fitting.length < checkpoints.length ? fitting.at(-1)!.sequence : nextBefore });
  },
});

export const runDelete = operation({
  name: "run_delete",
  summary: "Delete a run and its checkpoints permanently. A process that executes it stops at its next step.",
  input: z.strictObject({ run_id: RunId }),
  output: z.object({ deleted: z.boolean() }),
  access: "write",
  annotations: { destructive: true },
  toolset: "runs",
  cli: { positional: ["run_id"], examples: ["cairn run delete nightly-42"] },
  render: ({ deleted }) => (deleted ? "Deleted." : "There was no such run."),
  run: (cairn, input, context) => cairn.runs.delete(input, maySee(context)),
});

export const runPrune = operation({
  name: "run_prune",
  summary: "Delete old checkpoints and finished runs by age, count or both. Checkpoints needed to resume unfinished runs are kept.",
  input: z.strictObject({
    older_than: OlderThan.optional().describe(`Only older checkpoints: ${OLDER_THAN_FORMS} Finished runs are deleted entirely.`),
    keep_last: z.int().min(0).max(1_000_000).optional().describe("Keep the newest N checkpoints of each run."),
    run_id: RunId.optional().describe("Only this run."),
    dry_run: z.boolean().default(false).describe("Only report what would be deleted."),
  }),
  output: z.object({ checkpoints: z.int(), runs: z.int(), bytes: z.int(), dry_run: z.boolean() }),
  access: "admin",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "runs",
  cli: {
    examples: ["cairn run prune --older-than 7d --dry-run", "cairn run prune --keep-last 100"],
    cancelled: "Checkpoints that were deleted stay deleted; the others are unchanged.",
  },
  render: ({ checkpoints, runs, bytes, dry_run }) =>
    dry_run
      ? `${checkpoints} checkpoints and ${runs} whole runs would be deleted, with ${bytes} bytes of state.`
      : `Removed ${checkpoints} checkpoints, ${runs} whole runs; freed ${bytes} bytes of state.`,
  run: (cairn, input, context) => cairn.runs.prune(input, { maySee: maySee(context), signal: context.signal }),
});

export const runOperations = [runList, runGet, runHistory, ...inspectionOperations, ...requestOperations, runDelete, runPrune];
