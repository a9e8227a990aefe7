import { statSync } from "node:fs";
import { AUTOMATIC, sessionStartText } from "../../checkpoints/session-start.ts";
import { COMMAND_FRESHNESS_MS, type OpenedClient, openClient } from "../../client/open-client.ts";
import type { Config } from "../../config/schema.ts";
import type { ProjectIdentity } from "../../files/git-repository.ts";
import { staleNote } from "../../freshness/judge.ts";
import type { Checkpoint } from "../../model/checkpoint.ts";
import { CairnError } from "../../model/errors.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { invoke, LOCAL_CALLER } from "../../operations/invoke.ts";
import { type Redact, redactor } from "../../text/redact.ts";
import { parseJson } from "../../text/untrusted.ts";
import type { Call, Command } from "../command.ts";
import { type Host, print } from "../host.ts";
import { HOOK_NAMES, type HookName } from "../init/entries.ts";
import { isObject, type JsonObject } from "../init/json-file.ts";
import { findProject } from "../project.ts";
import { escapeControls } from "../terminal/style.ts";
import { sessionCheckpoint } from "./session-checkpoint.ts";
import { readTranscript, type SessionFacts, sessionFacts } from "./transcript.ts";

const INPUT_BYTES = 1024 * 1024;
/** Milliseconds until standard input must end: a program that leaves the pipe open must not make the agent wait. */
const INPUT_MS = 10_000;

/**
 * `cairn hook <event>`: runs as a hook of Claude Code, Codex, Gemini CLI or opencode. A failing hook disturbs the agent, and some exit codes stop it. So every error is
 * one line on stderr, and the exit code is 0.
 */
export const hookCommand: Command = {
  path: ["hook"],
  summary: "Save or offer checkpoints when a session is compacted, ends or starts. Set up by: cairn init --hooks",
  description: "Reads the JSON of the hook from standard input. Errors are printed on stderr, and the exit code is always 0.",
  flags: [{ name: "event", kind: "text", description: "The event of the session.", choices: HOOK_NAMES, required: true }],
  positional: ["event"],
  examples: ["cairn hook session-start < hook.json"],
  usesProject: true,
  async run(call) {
    const { host, json } = call;
    try {
      const answer = await runHook(call);
      if (answer ?? json) print(host, JSON.stringify(answer ?? {}));
    } catch (error) {
      const message = escapeControls(error instanceof Error ? error.message : String(error));
      host.stderr.write(json ? `${JSON.stringify({ error: { message } })}\n` : `cairn hook: ${message}\n`);
    }
  },
};

/** Runs the hook. Returns what the client reads on stdout, if anything. */
async function runHook(call: Call): Promise<JsonObject | undefined> {
  const { host, values } = call;
  const event = HOOK_NAMES.find((one) => one === values.event);
  if (!event) throw new Error(`The event must be one of ${HOOK_NAMES.join(", ")}`);
  const input = await readInput(host);
  const named = textOf(input.cwd);
  const cwd = named && statSync(named, { throwIfNoEntry: false })?.isDirectory() ? named : host.cwd;
  const { repository, tree } = values.project === undefined ? findProject(undefined, cwd) : call.project();
  const { config } = call.config();
  const client = await openClient(config, { jobs: "here", answersOnce: true });
  try {
    if (event === "session-start") return (await offer(client.cairn, { repository, tree }, input, config)) ?? (await suggest(call, input));
    await save(client, { repository, tree }, event, input, redactor(config.redaction));
    return undefined;
  } finally {
    await client.cairn.close();
  }
}

async function save(
  { cairn, operations }: OpenedClient,
  { repository: projectPath, tree }: ProjectIdentity,
  event: Exclude<HookName, "session-start">,
  input: JsonObject,
  redact: Redact,
): Promise<void> {
  const facts = factsOf(input);
  if (!facts) return;
  const sessionId = textOf(input.session_id);
  const checkpoint = sessionCheckpoint(
    { projectPath, tree },
    facts,
    {
      event,
      sessionId,
      why: textOf(input.trigger) ?? textOf(input.reason),
      compactSummary: event === "post-compact" ? textOf(input.compact_summary) : undefined,
    },
    redact,
  );
  if (!checkpoint) return;
  const { checkpoints: automatic } = await cairn.checkpoints.list({ projectPath, limit: LIMITS.listMax, tags: [AUTOMATIC] });
  // A session that ends right after a compaction would be saved twice.
  if (automatic[0]?.context.session_id === sessionId && automatic[0]?.description === redact(checkpoint.description ?? "").text) return;
  // The operation of the client side anchors the checkpoint to the working tree.
  const operation = operations.find(({ name }) => name === "checkpoint_save")!;
  const { projectPath: _, ...fields } = checkpoint;
  await invoke(cairn, operation, { ...fields, project_path: tree }, { caller: LOCAL_CALLER, edge: "cli" });
  const replaced = (one: Checkpoint) => one.context.session_id === sessionId && isCompaction(one.tags) === isCompaction([event]);
  const surplus = automatic.filter((one, index) => replaced(one) || index >= AUTOMATIC_KEPT - 1);
  for (const { id } of surplus) await cairn.checkpoints.purge({ projectPath, id }).catch(ignoreMissing);
}

/** Another hook of the session may have erased the checkpoint at the same time. */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof CairnError && error.code === "not_found")) throw error;
}

/** Returns the facts of the session from the transcript's file or, of a client without such files, from the input itself. */
function factsOf({ transcript, transcript_path }: JsonObject): SessionFacts | undefined {
  if (Array.isArray(transcript)) return sessionFacts(transcript.map((line) => JSON.stringify(line)));
  const path = textOf(transcript_path);
  if (!path) throw new Error("Nothing was saved: the input has no transcript_path");
  // Without the file, the session ended before its first request.
  return statSync(path, { throwIfNoEntry: false }) ? readTranscript(path) : undefined;
}

/** Automatic checkpoints that a project keeps. A session has at most two: of its last compaction and of its end. */
const AUTOMATIC_KEPT = 10;

const isCompaction = (tags: readonly string[]) => tags.some((tag) => tag.endsWith("-compact"));

async function offer(
  cairn: Cairn,
  { repository: projectPath, tree }: ProjectIdentity,
  { source, session_id }: JsonObject,
  { dataDir }: Config,
): Promise<JsonObject | undefined> {
  const { openTreeFreshness } = await import("../../client/freshness/tree-freshness.ts");
  const { check } = openTreeFreshness({ limitMs: COMMAND_FRESHNESS_MS, dataDir });
  const start = { projectPath, codePath: tree, source: textOf(source), sessionId: textOf(session_id) };
  const additionalContext = await sessionStartText(cairn.checkpoints, start, async (records) =>
    (await check(tree, records)).map((freshness) => staleNote({ freshness })),
  );
  return additionalContext === undefined ? undefined : { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext } };
}

/** Suggests to adopt earlier sessions, in a project without checkpoints. */
async function suggest({ host: { home, env }, config }: Call, input: JsonObject): Promise<JsonObject | undefined> {
  const { suggestAdopt } = await import("../../client/adopt/suggest-adopt.ts");
  const line = await suggestAdopt({ home, env, dataDir: config().config.dataDir, transcript: textOf(input.transcript_path) });
  if (line === undefined) return undefined;
  const additionalContext = `${line} Mention it to the user; do not run it unasked.`;
  return { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext } };
}

async function readInput({ stdin }: Host): Promise<JsonObject> {
  if (stdin.isTTY) throw new Error("The hook's JSON is expected on standard input");
  const deadline = setTimeout(() => stdin.destroy(new Error("Nothing was done: standard input did not end within 10 s")), INPUT_MS);
  try {
    return await readJson(stdin);
  } finally {
    clearTimeout(deadline);
  }
}

async function readJson(stdin: Host["stdin"]): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    size += chunks.at(-1)!.length;
    if (size > INPUT_BYTES) throw new Error("The input is too long for a hook's JSON");
  }
  const content = parseJson(Buffer.concat(chunks).toString("utf8"));
  if (!isObject(content)) throw new Error("The input is not a JSON object");
  return content;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
