import { clientFindings } from "../client/client-findings.ts";
import { openClient } from "../client/open-client.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import { placeholderOf, usage } from "./argv.ts";
import type { Call, Command, Flag } from "./command.ts";
import { commandNames, commandPath, commandWords } from "./command-words.ts";
import { EXIT_ATTENTION } from "./exit-code.ts";
import { fileFlag, withFiles } from "./file-inputs.ts";
import { flagNote } from "./flag-notes.ts";
import { type Host, print, printJson } from "./host.ts";
import { listPages } from "./list-pages.ts";
import { readTime, TIME_FORMS } from "./read-time.ts";
import { flagName, schemaFlags } from "./schema-flags.ts";
import { resolveShortIds } from "./short-id.ts";
import { type ProgressBar, progressBar } from "./terminal/progress-bar.ts";
import { viewText } from "./view.ts";

/**
 * Returns the command of an operation: `cairn checkpoint save` for `checkpoint_save`. Its flags come from the input schema, its help from
 * the summary. `served` are the operations of a server to load for the call; default all.
 */
export function operationCommand(operation: Operation, served?: readonly Operation[]): Command {
  const usesProject = operation.hasProject;
  const flags = schemaFlags(operation.input, usesProject ? ["project_path", "code_path"] : []).map((flag) =>
    describeFlag(operation, fileFlag(operation, flag)),
  );
  const settings = Object.entries(operation.cli?.settings ?? {}).map(([name, about]): Flag => ({ name, kind: "text", ...about }));
  return {
    path: commandPath(operation),
    summary: commandNames(operation.summary),
    description: operation.description && commandWords(commandNames(operation.description), operation, []),
    flags: [...flags, ...settings],
    positional: (operation.cli?.positional ?? []).map(flagName),
    examples: operation.cli?.examples ?? [],
    usesProject,
    storedProject: operation.cli?.storedProject,
    run: (call) => runOperation(operation, flags, call, served),
  };
}

const describeFlag = (operation: Operation, flag: Flag): Flag => ({
  ...flag,
  description: flag.description ? commandWords(commandNames(flag.description), operation, []) : flagNote(flag.name),
});

async function runOperation(
  operation: Operation,
  flags: readonly Flag[],
  call: Call,
  served: readonly Operation[] | undefined,
): Promise<void> {
  const { host, values } = call;
  const given = await withStdin(flags, withFiles(operation, values, host), host, operation.limits.bodyBytes);
  const missing = flags.find((flag) => flag.required && given[flag.name] === undefined);
  if (missing) throw usage(`${flagLabel(operation, missing.name)} is missing. Usage: ${usageLine(operation, flags)}`);
  assertChanges(operation, flags, given);
  const raw = Object.fromEntries(flags.filter(({ name }) => name in given).map(({ name }) => [name.replaceAll("-", "_"), given[name]]));
  const input = withTimes(operation, raw, host.now());
  const defaultProject = operation.hasProject ? call.project().tree : undefined;
  const loaded = call.config();
  const { config } = loaded;
  // Help and completion load none of these.
  const [{ invoke, LOCAL_CALLER }, { telemetryOf }] = await Promise.all([import("../operations/invoke.ts"), import("./watch.ts")]);
  const bar = progressBar(host);
  const telemetry = await telemetryOf(config);
  const { cairn, operations } = await openClient(config, {
    jobs: values.wait === true ? "here" : "process",
    findings: clientFindings(loaded, { home: host.home, tree: call.project().tree }),
    cancelWithCaller: true,
    answersOnce: true,
    ...(served && { operations: served }),
  });
  try {
    const context = { caller: LOCAL_CALLER, signal: host.signal, defaultProject, edge: "cli" } as const;
    const trace = { traceparent: host.env.TRACEPARENT, tracestate: host.env.TRACESTATE };
    const callByName = (name: string, fields: Readonly<Record<string, unknown>>, progress?: ProgressBar["update"]) =>
      invoke(cairn, operations.find((candidate) => candidate.name === name)!, fields, { ...context, ...trace, progress });
    const resolved = await resolveShortIds(operation, input, callByName);
    const output = await listPages(operation, resolved, (page) => callByName(operation.name, page, bar.update));
    bar.clear();
    assertFound(operation, output);
    if (call.json) printJson(host, output);
    else print(host, viewText(operation, resolved, output, host));
    if (!call.json) noteCommas(host, given.tags);
    if (operation.cli?.attention?.(output)) call.endWith(EXIT_ATTENTION);
  } catch (error) {
    throw host.signal.aborted ? interruption(operation, error) : translateToCli(operation, operations, error);
  } finally {
    bar.clear();
    await telemetry.close(); // before Cairn, because it reads the last metrics
    await cairn.close();
  }
}

/** Reports that a comma is part of a tag: other tools separate labels by commas. */
function noteCommas(host: Host, tags: unknown): void {
  const joined = Array.isArray(tags) ? tags.find((tag) => /^[^\s,]+(?:,[^\s,]+)+$/.test(String(tag))) : undefined;
  if (joined !== undefined) host.stderr.write(`cairn: ${JSON.stringify(joined)} is one tag. For several, repeat --tags.\n`);
}

/** Fields that hold a time. */
const TIME_FIELDS = ["created_from", "created_before", "changed_since", "older_than", "expires_at"];

/** Replaces times as people write them, such as `yesterday`, by times in UTC. */
function withTimes(operation: Operation, input: Readonly<Record<string, unknown>>, now: Date): Readonly<Record<string, unknown>> {
  const times = TIME_FIELDS.flatMap((field) => {
    const text = input[field];
    if (typeof text !== "string") return [];
    const time = readTime(text, now, { future: field === "expires_at" });
    if (time === undefined)
      throw usage(`${flagLabel(operation, flagName(field))}: ${JSON.stringify(text.slice(0, 60))} is not a time. Use ${TIME_FORMS}.`);
    return [[field, time] as const];
  });
  return { ...input, ...Object.fromEntries(times) };
}

/** Replaces the value `-` by the text from standard input. One flag may have it. */
async function withStdin(
  flags: readonly Flag[],
  values: Readonly<Record<string, unknown>>,
  host: Host,
  maxBytes: number = LIMITS.bodyBytes,
): Promise<Readonly<Record<string, unknown>>> {
  const piped = flags.filter((flag) => flag.kind === "text" && values[flag.name] === "-");
  const [first, second] = piped;
  if (!first) return values;
  if (second) throw usage(`--${first.name} and --${second.name} cannot both be read from standard input. Give one of them as text.`);
  return { ...values, [first.name]: await readAll(host, maxBytes) };
}

async function readAll({ stdin, signal }: Host, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const stop = () => stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of stdin) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > maxBytes) throw new CairnError("too_large", `Standard input has more than ${maxBytes} bytes. Shorten it.`);
      chunks.push(bytes);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, "");
  } catch (error) {
    if (signal.aborted) throw new CairnError("cancelled", "Cancelled.", { cause: error });
    if (error instanceof CairnError) throw error;
    throw new CairnError("invalid_input", "Standard input is not UTF-8 text.", { cause: error });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns the error of Ctrl-C, with what the call leaves behind. */
function interruption({ access, cli }: Operation, cause: unknown): CairnError {
  const kept = cli?.cancelled ?? (access === "read" ? "" : "The change is complete or absent.");
  return new CairnError("cancelled", `Cancelled.${kept ? ` ${kept}` : ""}`, { cause, details: { kept } });
}

/** Refuses an update without a change: it would only set the time of the update. */
function assertChanges({ name }: Operation, flags: readonly Flag[], given: Readonly<Record<string, unknown>>): void {
  if (!name.endsWith("_update")) return;
  const fields = flags.filter((flag) => !["id", "scope", "idempotency-key"].includes(flag.name));
  if (fields.some((flag) => given[flag.name] !== undefined)) return;
  const names = fields.map((flag) => `--${flag.name}`);
  throw usage(`Nothing to change. Give ${names.slice(0, -1).join(", ")} or ${names.at(-1)}.`);
}

/** Raises `not_found` for a record that was not there to delete: a script must be able to tell. */
function assertFound(operation: Operation, output: Readonly<Record<string, unknown>>): void {
  if (output.deleted === false || output.revoked === false) throw new CairnError("not_found", operation.render(output as never));
}

/** Writes an error in the words of the command line: `sort_by` is `--sort-by`, and `checkpoint_list` is `cairn checkpoint list`. */
function translateToCli(operation: Operation, operations: readonly Operation[], error: unknown): unknown {
  if (!(error instanceof CairnError)) return error;
  const { code, details, retryAfterMs, cause } = error;
  const issues = code === "invalid_input" ? details?.issues : undefined;
  const message = Array.isArray(issues) ? issuesText(operation, issues) : commandWords(error.message, operation, operations);
  if (message === error.message) return error;
  return new CairnError(code, message, {
    cause: cause ?? error,
    ...(details && { details }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function issuesText(operation: Operation, issues: readonly { readonly field: string; readonly problem: string }[]): string {
  return issues
    .map(({ field, problem }) => {
      const [top = "", ...inner] = field.split(".");
      if (top === "") return problem;
      return `${flagLabel(operation, flagName(top))}${inner.length > 0 ? ` (${inner.join(".")})` : ""}: ${problem}`;
    })
    .join("; ");
}

/** Returns the shortest complete command line: the required arguments and flags. */
function usageLine(operation: Operation, flags: readonly Flag[]): string {
  const required = flags.filter((flag) => flag.required);
  const positional = operation.cli?.positional?.map(flagName) ?? [];
  const free = positional.filter((name) => required.some((flag) => flag.name === name)).map((name) => `<${name}>`);
  const named = required.filter(({ name }) => !positional.includes(name)).map((flag) => `--${flag.name} <${placeholderOf(flag)}>`);
  return ["cairn", ...commandPath(operation), ...free, ...named].join(" ");
}

function flagLabel(operation: Operation, name: string): string {
  if (name === "project-path") return "--project";
  return operation.cli?.positional?.map(flagName).includes(name) ? `<${name}>` : `--${name}`;
}
