import {
  type CallToolResult,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { asCairnError, CairnError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Cairn } from "../operations/cairn.ts";
import { type Caller, type Invocation, invoke, LOCAL_CALLER } from "../operations/invoke.ts";
import type { Operation, Toolset } from "../operations/operation.ts";
import { servicesOf } from "../operations/validate-library.ts";
import type { Log } from "../ports/log.ts";
import { answerOf, readAnswerFields } from "./answer.ts";
import { checkpointPrompts, checkpointResources } from "./checkpoints.ts";
import { toolError } from "./errors.ts";
import { pageOf } from "./paging.ts";
import { type CallOperation, offerPrompts } from "./prompts.ts";
import { offerResources } from "./resources.ts";
import { chooseOperations, toolOf } from "./tools.ts";

export interface McpServerOptions {
  readonly cairn: Cairn;
  readonly operations: readonly Operation[];
  /** Which groups of tools are offered; by default `core`. */
  readonly toolsets?: readonly Toolset[] | undefined;
  /** The project meant when a call names none. Only the client side has one. */
  readonly defaultProject?: string | undefined;
  /** Instructs the model when to use Cairn; MCP calls this `instructions`. */
  readonly instructions?: string | undefined;
  /** Most tools in one answer to tools/list. */
  readonly pageSize?: number | undefined;
  /** The log of calls. Must not write to stdout. */
  readonly log?: Log | undefined;
}

export const DEFAULT_TOOLSETS: readonly Toolset[] = ["core"];

/** Many clients read only the first page, so it holds all tools of any sensible choice. */
const PAGE_SIZE = 100;

/** Characters of a client's request id that a log line carries. */
const REQUEST_ID_CHARS = 128;

const INSTRUCTIONS = `Cairn is durable memory that outlives this session.
At the start of work, look for checkpoints of this project and read the newest ones that matter.
Save a checkpoint when a step is done, before a risky change, and before you stop: what was done, what comes next, and facts a successor needs.
To find code, ask code_search before you read files; code_usages and code_context are exact.
When you meet an error, ask knowledge_search; when you have solved one, keep the solution with knowledge_save.
Answers are compact: detail "full" returns every field, max_tokens limits the length.
Never save secrets.`;

/**
 * Makes servers that offer the operations as tools. A server is cheap and serves one connection (stdio) or one request
 * (HTTP); what can be computed once is computed here.
 */
export function mcpServerFactory(served: McpServerOptions): McpServerFactory {
  const options = { ...served, cairn: servicesOf(served.cairn) };
  const { pageSize = PAGE_SIZE } = options;
  const chosen = chooseOperations(options.operations, options.toolsets ?? DEFAULT_TOOLSETS);
  const byName = new Map(chosen.map((operation) => [operation.name, operation]));
  const tools = chosen.map((operation) => toolOf(operation, options.defaultProject));
  const about = options.defaultProject === undefined ? "" : `\nThe project of this session is ${options.defaultProject}.`;
  const instructions = `${options.instructions ?? INSTRUCTIONS}${about}`;
  const prompts = checkpointPrompts(options.defaultProject);
  const resources = [checkpointResources(options.defaultProject)];

  return () => {
    // The SDK's higher-level McpServer would validate a second time, in its own words, and knows no paging.
    const server = new Server(
      { name: "cairn", title: "Cairn", version: VERSION },
      { capabilities: { tools: {}, prompts: {}, resources: {} }, instructions },
    );
    server.setRequestHandler("tools/list", ({ params }) => {
      const { items, nextCursor } = pageOf("tools", tools, params?.cursor, pageSize);
      return { tools: items, ...(nextCursor && { nextCursor }) };
    });
    server.setRequestHandler("tools/call", ({ params }, context) => {
      const operation = byName.get(params.name);
      if (!operation)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool ${JSON.stringify(params.name.slice(0, 100))}.`);
      return callTool(operation, params.arguments ?? {}, context, options);
    });
    const callFor = (context: ServerContext) => callByName(context, options);
    offerPrompts(server, prompts, callFor, pageSize);
    offerResources(server, resources, callFor, pageSize);
    return server;
  };
}

/** Prompts and resources read through the operations, so that the same checks hold for them as for tools. */
function callByName(context: ServerContext, options: McpServerOptions): CallOperation {
  return async (name, input) => {
    const operation = options.operations.find((one) => one.name === name);
    if (!operation) throw new CairnError("unavailable", `This server does not offer ${name}.`);
    return invoke(options.cairn, operation, input, invocationOf(context, options));
  };
}

async function callTool(
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
  context: ServerContext,
  options: McpServerOptions,
): Promise<CallToolResult> {
  try {
    const { detail, maxTokens, fields } = readAnswerFields(operation, input);
    const call = (from: Readonly<Record<string, unknown>>) => invoke(options.cairn, operation, from, invocationOf(context, options));
    const repeat = (limit: number) => call({ ...fields, limit });
    return await answerOf(operation, await call(fields), { detail, maxTokens, repeat });
  } catch (error) {
    return toolError(asCairnError(error));
  }
}

function invocationOf(context: ServerContext, { defaultProject, log }: McpServerOptions): Invocation {
  const meta = context.mcpReq._meta;
  return {
    caller: callerOf(context),
    signal: cancellation(context.mcpReq.signal),
    progress: progressReporter(context),
    defaultProject,
    log,
    edge: "mcp",
    requestId: String(context.mcpReq.id).slice(0, REQUEST_ID_CHARS),
    traceparent: textOrNothing(meta?.traceparent),
    tracestate: textOrNothing(meta?.tracestate),
  };
}

/** The SDK aborts with whatever reason the client wrote, or with an error of its own; to Cairn all of these are a cancelled call. */
function cancellation(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  if (signal.aborted) controller.abort();
  else signal.addEventListener("abort", () => controller.abort(), { once: true });
  return controller.signal;
}

/** Over HTTP the caller comes with every request, so that a key taken back stops working within a session; stdio is the local person. */
function callerOf(context: ServerContext): Caller {
  if (!context.http) return LOCAL_CALLER;
  const caller = context.http.authInfo?.extra?.caller;
  if (!caller) throw new CairnError("unauthorized", "This request carries no caller.");
  return caller as Caller;
}

function textOrNothing(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= 512 ? value : undefined;
}

/** Clients show progress to people; more often than this helps nobody. */
const MIN_INTERVAL_MS = 50;

/** Sends progress to a client that asked for it. The protocol wants it to grow with every message. */
function progressReporter({ mcpReq }: ServerContext): Invocation["progress"] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let last = Number.NEGATIVE_INFINITY;
  let sentAt = Number.NEGATIVE_INFINITY;
  return (progress, total, message) => {
    const now = performance.now();
    const finished = total !== undefined && progress >= total;
    if (progress <= last || (!finished && now - sentAt < MIN_INTERVAL_MS)) return;
    last = progress;
    sentAt = now;
    const params = { progressToken, progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
    // A client that went away is noticed by its signal, not here.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  };
}
