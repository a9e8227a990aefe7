import type { Readable, Writable } from "node:stream";
import {
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  type RequestId,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/server";
import { LIMITS } from "../model/limits.ts";
import { beginCall } from "../scheduling/calls.ts";
import { parseJson } from "../text/untrusted.ts";
import { KEPT_BYTES, type Line, lineReader } from "./line-reader.ts";

export interface StdioTransportOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly maxLineBytes?: number;
  /** How long calls that were under way when the input ended may take to be answered. */
  readonly drainMs?: number;
}

/** A client that sends more calls than this without reading answers waits; nothing is dropped. */
const MAX_UNANSWERED = 256;

/**
 * JSON-RPC over lines. Differs from the SDK's own transport in what a bad client can do to it: a broken line is answered
 * with an error, a line of any length neither fills the memory nor ends the connection, and calls that were read before
 * the input ended are still answered.
 */
export function stdioTransport(options: StdioTransportOptions): Transport {
  const { input, output, maxLineBytes = LIMITS.bodyBytes, drainMs = 5_000 } = options;
  /** With what says that it has been answered. */
  const unanswered = new Map<RequestId, () => void>();
  let ended = false;
  let closed = false;
  let drainTimer: NodeJS.Timeout | undefined;

  const transport: Transport = {
    async start() {
      input.on("data", read);
      input.on("end", onEnd);
      input.on("close", onEnd);
      input.on("error", onBroken);
      output.on("error", onBroken);
      output.on("close", close);
    },
    async send(message) {
      if (closed) return;
      await write(serializeMessage(message));
      if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) settleRequest(message.id);
    },
    close: async () => close(),
  };

  const read = lineReader(maxLineBytes, (line) => {
    const parsed = parseLine(line, maxLineBytes);
    if ("error" in parsed) void write(`${JSON.stringify({ jsonrpc: "2.0", ...parsed })}\n`).catch(() => {});
    else receive(parsed.message);
  });

  function receive(message: JSONRPCMessage): void {
    // A subscription is answered only when it ends, which nobody waits for.
    if (isJSONRPCRequest(message) && message.method !== "subscriptions/listen") unanswered.set(message.id, beginCall());
    if (unanswered.size >= MAX_UNANSWERED) input.pause();
    // A cancelled request gets no answer.
    if (isJSONRPCNotification(message) && message.method === "notifications/cancelled")
      settleRequest((message.params as { requestId?: RequestId } | undefined)?.requestId);
    transport.onmessage?.(message);
  }

  function settleRequest(id: RequestId | undefined): void {
    if (id !== undefined) {
      unanswered.get(id)?.();
      unanswered.delete(id);
    }
    if (!closed && input.isPaused() && unanswered.size < MAX_UNANSWERED) input.resume();
    if (ended && unanswered.size === 0) close();
  }

  function onEnd(): void {
    if (ended || closed) return;
    ended = true;
    if (unanswered.size === 0) close();
    else drainTimer = setTimeout(close, drainMs);
  }

  function onBroken(error: Error): void {
    transport.onerror?.(error);
    close();
  }

  function close(): void {
    if (closed) return;
    closed = true;
    clearTimeout(drainTimer);
    input.off("data", read);
    input.pause();
    transport.onclose?.();
  }

  /** Waits for a slow reader; gives up when the connection ends, so that no write waits for ever. */
  function write(text: string): Promise<void> {
    return new Promise((resolve, reject) => output.write(text, (error) => (error ? reject(error) : resolve())));
  }

  return transport;
}

type Parsed = { readonly message: JSONRPCMessage } | { readonly id?: RequestId; readonly error: { code: number; message: string } };

function parseLine(line: Line, maxBytes: number): Parsed {
  if ("tooLong" in line)
    return failure(ProtocolErrorCode.InvalidRequest, `The message is longer than ${maxBytes} bytes. Send less at once.`, idOfLong(line));
  if ("notUtf8" in line) return failure(ProtocolErrorCode.ParseError, "The line is not valid UTF-8.");
  let json: unknown;
  try {
    json = parseJson(line.text);
  } catch (error) {
    const id = idOfLong({ head: line.text.slice(0, KEPT_BYTES), tail: line.text.slice(-KEPT_BYTES) });
    return failure(ProtocolErrorCode.ParseError, `The line is ${(error as Error).message} Send one JSON-RPC message per line.`, id);
  }
  try {
    return { message: parseJSONRPCMessage(json) };
  } catch {
    const why = Array.isArray(json) ? "Batches are not supported; send one message per line." : "The message is not JSON-RPC 2.0.";
    return failure(ProtocolErrorCode.InvalidRequest, why, idOf(json));
  }
}

function failure(code: number, message: string, id?: RequestId): Parsed {
  return { ...(id !== undefined && { id }), error: { code, message } };
}

function idOf(json: unknown): RequestId | undefined {
  const id = typeof json === "object" && json !== null ? (json as { id?: unknown }).id : undefined;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as RequestId) : undefined;
}

const ID = String.raw`"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,15})`;
const ID_AT_START = new RegExp(String.raw`^\s*\{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*${ID}`);
const ID_AT_END = new RegExp(String.raw`,\s*${ID}\s*\}\s*$`);

/** The id of a request that is too long to parse. It stands at one of the ends in what clients write; elsewhere the error goes without. */
function idOfLong({ head, tail }: { head: string; tail: string }): RequestId | undefined {
  const found = ID_AT_START.exec(head)?.[1] ?? ID_AT_END.exec(tail)?.[1];
  return found === undefined ? undefined : (JSON.parse(found) as RequestId);
}
