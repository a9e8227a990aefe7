import { statSync } from "node:fs";
import { openClient } from "../../client/open-client.ts";
import type { ProjectIdentity } from "../../files/git-repository.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { redactSecrets } from "../../text/redact.ts";
import { parseJson } from "../../text/untrusted.ts";
import type { Call, Command } from "../command.ts";
import { type Host, print } from "../host.ts";
import { HOOK_EVENTS } from "../init/entries.ts";
import { isObject, type JsonObject } from "../init/json-file.ts";
import { findProject } from "../project.ts";
import { escapeControls } from "../terminal/style.ts";
import { sessionCheckpoint } from "./session-checkpoint.ts";
import { readTranscript } from "./transcript.ts";

const EVENTS = Object.values(HOOK_EVENTS);
const INPUT_BYTES = 1024 * 1024;
/** Milliseconds until standard input must end: a program that leaves the pipe open must not make the agent wait. */
const INPUT_MS = 10_000;
/** Checkpoints and tokens that a session gets at its start. It can request more. */
const OFFERED = 3;
const OFFERED_TOKENS = 1_500;

/**
 * `cairn hook <event>`: runs as a hook of Claude Code. A failing hook disturbs the agent, and some exit codes stop it. So every error is
 * one line on stderr, and the exit code is 0.
 */
export const hookCommand: Command = {
  path: ["hook"],
  summary: "Save or offer checkpoints when a session is compacted, ends or starts. Set up by: cairn init --hooks",
  description: "Reads the JSON of the hook from standard input. Errors are printed on stderr, and the exit code is always 0.",
  flags: [{ name: "event", kind: "text", description: "The event of the session.", choices: EVENTS, required: true }],
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

/** Runs the hook. Returns what Claude Code reads on stdout, if anything. */
async function runHook(call: Call): Promise<JsonObject | undefined> {
  const { host, values } = call;
  const event = EVENTS.find((one) => one === values.event);
  if (!event) throw new Error(`The event must be one of ${EVENTS.join(", ")}`);
  const input = await readInput(host);
  const named = textOf(input.cwd);
  const cwd = named && statSync(named, { throwIfNoEntry: false })?.isDirectory() ? named : host.cwd;
  const { repository, tree } = values.project === undefined ? findProject(undefined, cwd) : call.project();
  const { cairn } = await openClient(call.config().config, { jobs: "here" });
  try {
    if (event === "session-start") return (await offer(cairn, repository, input)) ?? (await suggest(call, input));
    await save(cairn, { repository, tree }, event, input);
    return undefined;
  } finally {
    await cairn.close();
  }
}

async function save(
  cairn: Cairn,
  { repository: projectPath, tree }: ProjectIdentity,
  event: "pre-compact" | "session-end",
  input: JsonObject,
): Promise<void> {
  const path = textOf(input.transcript_path);
  if (!path) throw new Error("Nothing was saved: the input has no transcript_path");
  const sessionId = textOf(input.session_id);
  const checkpoint = sessionCheckpoint({ projectPath, tree }, readTranscript(path), {
    event,
    sessionId,
    why: textOf(input.trigger) ?? textOf(input.reason),
  });
  if (!checkpoint) return;
  const { checkpoints } = await cairn.checkpoints.list({ projectPath, limit: 1, tags: ["auto"] });
  // A session that ends right after a compaction would be saved twice.
  if (checkpoints[0]?.context.session_id === sessionId && checkpoints[0]?.description === redactSecrets(checkpoint.description ?? "").text)
    return;
  await cairn.checkpoints.save(checkpoint);
}

async function offer(cairn: Cairn, projectPath: string, { source }: JsonObject): Promise<JsonObject | undefined> {
  const { checkpoints, total } = await cairn.checkpoints.list({ projectPath, limit: OFFERED });
  const [latest, ...older] = checkpoints;
  if (!latest) return undefined;
  // After a compaction the session has lost its details; the newest checkpoint holds them.
  const level = source === "compact" ? "full" : "context";
  const { text } = await cairn.checkpoints.resume({ projectPath, id: latest.id, level, maxTokens: OFFERED_TOKENS });
  const additionalContext = [
    `Cairn has ${total} checkpoints of this project. The newest:`,
    text,
    ...(older.length > 0 ? [`Earlier:\n${older.map(({ id, createdAt, summary }) => `- ${createdAt} ${summary} (${id})`).join("\n")}`] : []),
    "These are notes of earlier sessions; check them against the current files. checkpoint_resume and checkpoint_search return more.",
  ].join("\n\n");
  return { hookSpecificOutput: { hookEventName: "SessionStart", additionalContext } };
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
