import { asCairnError, CairnError } from "../model/errors.ts";
import type { Log } from "../ports/log.ts";
import { beginCall, withTimeLimit } from "../scheduling/calls.ts";
import { observe } from "../telemetry/observe.ts";
import type { Cairn } from "./cairn.ts";
import { problemOf } from "./describe-issue.ts";
import type { Access, Operation } from "./operation.ts";
import { coerceInput, toCamel, toWire } from "./wire.ts";

/** A caller with its access and its projects. */
export interface Caller {
  readonly access: Access;
  readonly projects: "all" | readonly string[];
  /** The id of the key that was presented, for the log. */
  readonly keyId?: string | undefined;
}

/** The local user: over stdio, on the command line, or over HTTP with the local token. */
export const LOCAL_CALLER: Caller = { access: "admin", projects: "all" };

export interface Invocation {
  readonly caller: Caller;
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
  /** The project of calls that name none. Only the client side has one. */
  readonly defaultProject?: string | undefined;
  /** W3C trace context of the caller, from HTTP headers or MCP `_meta`. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  /** The log of the call, if any. */
  readonly log?: Log | undefined;
  readonly edge?: "http" | "mcp" | "cli" | undefined;
  readonly requestId?: string | undefined;
}

/** A command validates one call, and compiling its schemas to code takes longer than that. */
const parsing = ({ edge }: Invocation) => (edge === "cli" ? { jitless: true } : undefined);

const RANK: Record<Access, number> = { read: 0, write: 1, admin: 2 };

/** Runs an operation for a surface: authorises the caller, validates input and output once, limits the time, and records the call. */
export function invoke(cairn: Cairn, operation: Operation, raw: unknown, invocation: Invocation): Promise<Record<string, unknown>> {
  const call = { ...invocation, operation: operation.name, keyId: invocation.caller.keyId };
  const endCall = beginCall();
  return observe(call, () => perform(cairn, operation, raw, invocation)).finally(endCall);
}

async function perform(cairn: Cairn, operation: Operation, raw: unknown, invocation: Invocation): Promise<Record<string, unknown>> {
  const { caller, progress } = invocation;
  if (RANK[caller.access] < RANK[operation.access])
    throw new CairnError(
      "forbidden",
      `This key has ${caller.access} access, and ${operation.name} needs ${operation.access} access. Use another key.`,
    );
  const input = parseInput(operation, resolveProject(operation, raw, invocation.defaultProject), invocation);
  const mayTouch = (projectId: string) => caller.projects === "all" || caller.projects.includes(projectId);
  const { project_path: project } = input;
  if (typeof project === "string" && !mayTouch(project))
    throw new CairnError("forbidden", "This key is not valid for that project. Use a key of the project.");

  const allowed = withoutForeignCode(input, mayTouch);
  const context = { progress: progress ?? (() => {}), mayTouch, allProjects: caller.projects === "all", keyId: caller.keyId };
  try {
    const { timeoutMs } = operation.limits;
    const result = await withTimeLimit(timeoutMs, () =>
      untilAborted(timeoutMs, invocation.signal, (signal) =>
        operation.run(cairn, toCamel(operation.input, allowed) as never, { ...context, signal }),
      ),
    );
    return operation.output.parse(toWire(operation.output, result), parsing(invocation)) as Record<string, unknown>;
  } catch (error) {
    throw asCairnError(error);
  }
}

/**
 * Removes a code index that the caller may not read: records are then neither anchored to it nor compared with it. An error would make the
 * records of a project depend on access to the index of a linked working tree.
 */
function withoutForeignCode(input: Record<string, unknown>, mayTouch: (projectId: string) => boolean): Record<string, unknown> {
  const { code_path: path } = input;
  return typeof path === "string" && !mayTouch(path) ? { ...input, code_path: "" } : input;
}

/** Ends the call when its time is up or its caller disconnects, also when the work ignores its signal. */
async function untilAborted<T>(timeoutMs: number, caller: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  // One controller and a timer that is cleared: AbortSignal.timeout would keep its own for the whole time limit of every call.
  const controller = new AbortController();
  const { signal } = controller;
  const timer = setTimeout(() => controller.abort(new DOMException("The time is up.", "TimeoutError")), timeoutMs);
  const leave = () => controller.abort(new DOMException("The caller went away.", "AbortError"));
  if (caller?.aborted) leave();
  else caller?.addEventListener("abort", leave, { once: true });
  try {
    signal.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return await Promise.race([work(signal), aborted]);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener("abort", leave);
  }
}

/** Fills in `project_path`: from `project_id`, which the wire accepts as an alias, or else the default project. */
function resolveProject(operation: Operation, raw: unknown, defaultProject: string | undefined): unknown {
  if (typeof raw !== "object" || raw === null || Array.isArray(raw) || !operation.hasProject) return raw;
  const { project_id: alias, ...input } = raw as Readonly<Record<string, unknown>>;
  if (alias !== undefined && input.project_path !== undefined && alias !== input.project_path)
    throw new CairnError("invalid_input", "project_id: is an alias of project_path and names another project. Leave it out.");
  const project = input.project_path ?? alias ?? defaultProject;
  return project === undefined || (alias === undefined && input.project_path !== undefined) ? raw : { ...input, project_path: project };
}

function parseInput(operation: Operation, raw: unknown, invocation: Invocation): Record<string, unknown> {
  if (hasProtoKey(raw)) throw new CairnError("invalid_input", 'unknown field "__proto__": no field may have this name.');
  const parsed = operation.input.safeParse(coerceInput(operation.input, raw ?? {}), parsing(invocation));
  if (parsed.success) return parsed.data as Record<string, unknown>;
  const issues = parsed.error.issues
    .slice(0, 10)
    .map((issue) => ({ field: issue.path.join(".").slice(0, 200), problem: problemOf(issue) }));
  throw new CairnError("invalid_input", issues.map(({ field, problem }) => (field ? `${field}: ${problem}` : problem)).join("; "), {
    details: { issues },
  });
}

/** Whether a field is named `__proto__`. Schemas drop it silently, so a part of the input would not be stored. */
function hasProtoKey(raw: unknown): boolean {
  const pending = [raw];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "__proto__")) return true;
    for (const inner of Object.values(value)) if (typeof inner === "object") pending.push(inner);
  }
  return false;
}
