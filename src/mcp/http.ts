import {
  type AuthInfo,
  createMcpHandler,
  INVALID_REQUEST,
  isJsonContentType,
  isLegacyRequest,
  type McpServerFactory,
  PARSE_ERROR,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import { LIMITS } from "../model/limits.ts";
import type { Caller } from "../operations/invoke.ts";
import { parseJson } from "../text/untrusted.ts";
import { type GuardOptions, refuseForeignRequest } from "./guards.ts";
import { rpcErrorResponse } from "./rpc-response.ts";
import { legacySessions, type SessionOptions } from "./sessions.ts";

export interface McpHttpOptions extends GuardOptions, SessionOptions {
  readonly maxBodyBytes?: number | undefined;
}

export interface McpHttpHandler {
  /** Serves one request of a caller that the HTTP surface has authenticated. */
  fetch(request: Request, caller: Caller): Promise<Response>;
  /** Notifies clients that subscribed (2026 protocol) of changes. */
  readonly notify: ServerNotifier;
  /** Ends all sessions and calls under way. */
  close(): Promise<void>;
}

/** Serves Streamable HTTP for both protocol eras, as a plain function of a request. */
export function mcpHttpHandler(factory: McpServerFactory, options: McpHttpOptions = {}): McpHttpHandler {
  const { onError, maxBodyBytes = LIMITS.bodyBytes } = options;
  const modern = createMcpHandler(factory, { legacy: "reject", ...(onError && { onerror: onError }) });
  const legacy = legacySessions(factory, options);

  return {
    notify: modern.notify,
    async fetch(request, caller) {
      const foreign = refuseForeignRequest(request, options);
      if (foreign) return foreign;
      const body = request.method === "POST" ? await readJson(request, maxBodyBytes) : undefined;
      if (body instanceof Response) return body;
      const context = { authInfo: authInfoOf(caller), ...(body && { parsedBody: body.json }) };
      return (await isLegacyRequest(request, body?.json)) ? legacy.fetch(request, context, caller) : modern.fetch(request, context);
    },
    async close() {
      await Promise.all([modern.close(), legacy.close()]);
    },
  };
}

/** How the caller travels through the SDK to the server's handlers. The SDK reads none of it. */
function authInfoOf(caller: Caller): AuthInfo {
  return { token: "", clientId: "", scopes: [], extra: { caller } };
}

async function readJson(request: Request, maxBytes: number): Promise<{ json: unknown } | Response> {
  if (!isJsonContentType(request.headers.get("content-type"))) return rpcErrorResponse(415, -32000, "The body must be application/json.");
  const tooLarge = () => rpcErrorResponse(413, -32000, `The body is larger than ${maxBytes} bytes. Send less at once.`);
  if (Number(request.headers.get("content-length")) > maxBytes) return tooLarge();
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.byteLength;
    if (bytes > maxBytes) return tooLarge();
    parts.push(part);
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    return rpcErrorResponse(400, PARSE_ERROR, "The body is not valid UTF-8. Send JSON in UTF-8.");
  }
  try {
    const json = parseJson(text);
    // One request is one call: the limits on calls in flight and calls per second count requests.
    if (Array.isArray(json)) return rpcErrorResponse(400, INVALID_REQUEST, "Batches are not supported; send one message per request.");
    return { json };
  } catch (error) {
    return rpcErrorResponse(400, PARSE_ERROR, `The body is ${(error as Error).message}`);
  }
}
