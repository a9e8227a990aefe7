import { clientFindings } from "../client/client-findings.ts";
import { openClient } from "../client/open-client.ts";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import { usage } from "./argv.ts";
import type { Call, Command, Flag } from "./command.ts";
import { EXIT_ATTENTION } from "./exit-code.ts";
import { fileFlag, withFiles } from "./file-inputs.ts";
import { type Host, print, printJson } from "./host.ts";
import { flagName, schemaFlags } from "./schema-flags.ts";
import { progressBar } from "./terminal/progress-bar.ts";
import { viewText } from "./view.ts";

/**
 * Returns the command of an operation: `cairn checkpoint save` for `checkpoint_save`. Its flags come from the input schema, its help from
 * the summary. `served` are the operations of a server to load for the call; default all.
 */
export function operationCommand(operation: Operation, served?: readonly Operation[]): Command {
  const usesProject = operation.hasProject;
  const flags = schemaFlags(operation.input, usesProject ? ["project_path"] : []).map((flag) => fileFlag(operation, flag));
  const settings = Object.entries(operation.cli?.settings ?? {}).map(([name, about]): Flag => ({ name, kind: "text", ...about }));
  return {
    path: commandPath(operation),
    summary: operation.summary,
    description: operation.description,
    flags: [...flags, ...settings],
    positional: (operation.cli?.positional ?? []).map(flagName),
    examples: operation.cli?.examples ?? [],
    usesProject,
    run: (call) => runOperation(operation, flags, call, served),
  };
}

/** Returns the noun and the verb of an operation, as words of a command line: the verb with dashes. */
export function commandPath({ name }: Pick<Operation, "name">): string[] {
  const cut = name.indexOf("_");
  return cut === -1 ? [name] : [name.slice(0, cut), flagName(name.slice(cut + 1))];
}

async function runOperation(
  operation: Operation,
  flags: readonly Flag[],
  call: Call,
  served: readonly Operation[] | undefined,
): Promise<void> {
  const { host, values } = call;
  const input = await withStdin(flags, withFiles(operation, values, host), host, operation.limits.bodyBytes);
  const missing = flags.find((flag) => flag.required && input[flag.name] === undefined);
  if (missing) throw usage(`${flagLabel(operation, missing.name)} is missing.`);
  const raw = Object.fromEntries(flags.filter(({ name }) => name in input).map(({ name }) => [name.replaceAll("-", "_"), input[name]]));
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
    ...(served && { operations: served }),
  });
  try {
    const output = await invoke(cairn, operations.find(({ name }) => name === operation.name)!, raw, {
      caller: LOCAL_CALLER,
      signal: host.signal,
      progress: bar.update,
      defaultProject,
      edge: "cli",
      traceparent: host.env.TRACEPARENT,
      tracestate: host.env.TRACESTATE,
    });
    bar.clear();
    if (call.json) printJson(host, output);
    else print(host, viewText(operation, output, host));
    if (operation.cli?.attention?.(output)) call.endWith(EXIT_ATTENTION);
  } catch (error) {
    throw withFlagNames(operation, error);
  } finally {
    bar.clear();
    await telemetry.close(); // before Cairn, because it reads the last metrics
    await cairn.close();
  }
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

/** Names the fields of a validation error by their flags: `sort_by` is `--sort-by`. */
function withFlagNames(operation: Operation, error: unknown): unknown {
  const issues = error instanceof CairnError && error.code === "invalid_input" ? error.details?.issues : undefined;
  if (!Array.isArray(issues)) return error;
  const messages = (issues as { field: string; problem: string }[]).map(({ field, problem }) => {
    const [top = "", ...inner] = field.split(".");
    if (top === "") return problem;
    return `${flagLabel(operation, flagName(top))}${inner.length > 0 ? ` (${inner.join(".")})` : ""}: ${problem}`;
  });
  return new CairnError("invalid_input", messages.join("; "), { cause: error, details: { issues } });
}

function flagLabel(operation: Operation, name: string): string {
  if (name === "project-path") return "--project";
  return operation.cli?.positional?.map(flagName).includes(name) ? `<${name}>` : `--${name}`;
}
