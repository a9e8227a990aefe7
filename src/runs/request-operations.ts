import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";
import type { Requested } from "./requests.ts";
import { LISTENING, maySee, present, RunId, RunOutput } from "./wire-schemas.ts";

const RequestOutput = z.object({
  run: RunOutput,
  changed: z.boolean().describe("False: the same request was made before."),
  ...LISTENING,
});
type RequestAnswer = z.output<typeof RequestOutput>;

const renderRequest =
  (done: string, before: string) =>
  ({ run, changed, hint }: RequestAnswer): string =>
    [`${run.run_id}: ${run.status}. ${changed ? done : before}`, hint ?? "A worker listens and continues it."].join("\n");

export const runAnswer = operation({
  name: "run_answer",
  summary: "Answer the question of a paused run. The first answer counts; a worker with the graph continues the run.",
  input: z.strictObject({
    run_id: RunId,
    answer: text(LIMITS.runAnswerChars).optional().describe("The answer as text."),
    answer_json: text(LIMITS.runAnswerChars, 1).optional().describe("The answer as JSON: a number, a list, an object."),
    node: text(LIMITS.runKeyChars, 1).optional().describe("The node that asks, if several do."),
    sequence: z.int().min(1).optional().describe("The sequence of the question: a repeated call then never answers a later one."),
  }),
  output: RequestOutput,
  access: "write",
  toolset: "runs",
  cli: {
    positional: ["run_id", "answer"],
    examples: ["cairn run answer order-1 yes", "cairn run answer order-1 --answer-json 65"],
  },
  render: renderRequest("The answer is stored.", "This answer was stored before."),
  async run(cairn, { answer, answerJson, ...input }, context) {
    if ((answer === undefined) === (answerJson === undefined))
      throw new CairnError("invalid_input", "Give the answer as text in answer, or as JSON in answer_json.");
    const value = answerJson === undefined ? answer : parseJson("answer_json", answerJson);
    return presentRequest(await cairn.runs.answer({ ...input, answer: value }, maySee(context)));
  },
});

export const runResume = operation({
  name: "run_resume",
  summary: "Ask for a failed, cancelled or abandoned run to be continued by a worker with its graph.",
  input: z.strictObject({ run_id: RunId }),
  output: RequestOutput,
  access: "write",
  toolset: "runs",
  cli: { positional: ["run_id"], examples: ["cairn run resume nightly-42"] },
  render: renderRequest("It waits for a worker.", "It waits for a worker already."),
  run: async (cairn, input, context) => presentRequest(await cairn.runs.resume(input, maySee(context))),
});

export const runFork = operation({
  name: "run_fork",
  summary: "Create a new run that continues from a checkpoint of a run. The old run is unchanged.",
  input: z.strictObject({
    run_id: RunId,
    sequence: z.int().min(1).describe("The checkpoint of the main line to continue from."),
    new_run_id: RunId.optional().describe("The id of the new run; generated if not given."),
    state_json: text(LIMITS.runInputChars, 1).optional().describe("Another state, as JSON."),
    replay: z.boolean().default(false).describe("Run the node of the checkpoint again, with the state it was given then."),
  }),
  output: RequestOutput,
  access: "write",
  toolset: "runs",
  cli: {
    positional: ["run_id", "sequence"],
    examples: ["cairn run fork nightly-42 7", "cairn run fork nightly-42 7 --new-run-id nightly-42b --replay"],
  },
  render: renderRequest("The new run waits for a worker.", "This fork was created before."),
  async run(cairn, { stateJson, ...input }, context) {
    const state = stateJson === undefined ? {} : { state: parseJson("state_json", stateJson) };
    return presentRequest(await cairn.runs.fork({ ...input, ...state }, maySee(context)));
  },
});

export const runEnqueue = operation({
  name: "run_enqueue",
  summary: "Queue a new run of a graph. A worker with the graph executes it.",
  input: z.strictObject({
    graph: text(LIMITS.runKeyChars, 1).describe("The name of the graph."),
    input_json: text(LIMITS.runInputChars, 1).describe("The initial state, as JSON."),
    run_id: RunId.optional().describe("The id of the new run; generated if not given. A repeated call with it creates no second run."),
    project: text(LIMITS.projectPathChars, 1).optional().describe("The project of the run, which decides who may see it."),
    delay_seconds: z.number().min(0).max(31_536_000).default(0).describe("Seconds before a worker may start it."),
  }),
  output: RequestOutput,
  access: "write",
  toolset: "runs",
  cli: {
    positional: ["graph", "input_json"],
    examples: [`cairn run enqueue order '{"items": 10}' --run-id order-2`],
  },
  render: renderRequest("It waits for a worker.", "This run was queued before."),
  run: async (cairn, { inputJson, ...input }, context) =>
    presentRequest(await cairn.runs.enqueue({ ...input, input: parseJson("input_json", inputJson) }, maySee(context))),
});

export const runWorkers = operation({
  name: "run_workers",
  summary: "List the workers that listen for runs, and the ones that stopped in the last week.",
  input: z.strictObject({
    graph: text(LIMITS.runKeyChars, 1).optional().describe("Only workers of the graph with this name."),
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listMax),
  }),
  output: z.object({
    workers: z.array(
      z.object({
        worker_id: z.string(),
        graph: z.string(),
        fingerprint: z.string(),
        listening: z.boolean(),
        command: z.string().optional(),
        folder: z.string().optional(),
        started_at: z.iso.datetime(),
        until: z.iso.datetime().describe("When the announcement expires, or expired."),
      }),
    ),
  }),
  access: "read",
  toolset: "runs",
  cli: {
    examples: ["cairn run workers", "cairn run workers --graph order"],
    view: {
      table: "workers",
      columns: ["graph", "listening", "command", "folder", "until", "fingerprint"],
      optional: ["fingerprint", "folder", "until"],
    },
  },
  render: ({ workers }) =>
    workers.length === 0
      ? "No workers. Start one: cairn run work <module that exports graphs>"
      : workers
          .map(({ graph, listening, command, until }) => `${graph}  ${listening ? "listening" : `stopped ${until}`}  ${command ?? ""}`)
          .join("\n"),
  async run(cairn, input, context) {
    const { workers } = await cairn.runs.workers(input, maySee(context));
    return present({ workers: workers.map(({ owner: _, ...worker }) => worker) });
  },
});

export const requestOperations = [runAnswer, runResume, runFork, runEnqueue, runWorkers];

function presentRequest({ run, ...rest }: Requested): unknown {
  return present({ run: { ...run, note: null }, ...rest });
}

function parseJson(field: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new CairnError("invalid_input", `${field}: not valid JSON. Text needs quotes in JSON.`, { details: { field } });
  }
}
