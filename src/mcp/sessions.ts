import { randomUUID } from "node:crypto";
import {
  isInitializeRequest,
  type LegacyHttpHandler,
  legacyStatelessFallback,
  type McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { rpcErrorResponse } from "./rpc-response.ts";

export interface SessionOptions {
  readonly onError?: ((error: Error) => void) | undefined;
  /** Beyond this the session that was idle longest ends; its client starts a new one. */
  readonly maxSessions?: number | undefined;
  readonly idleMs?: number | undefined;
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly owner: string;
  usedAt: number;
}

/**
 * Serves the 2025 protocol over HTTP. A client that initializes gets a session, without which it could not cancel a call;
 * a request that never had one is served by itself.
 */
export function legacySessions(
  factory: McpServerFactory,
  { onError, maxSessions = 1_000, idleMs = 24 * 60 * 60 * 1_000 }: SessionOptions = {},
): { fetch: LegacyHttpHandler; close(): Promise<void> } {
  const sessions = new Map<string, Session>(); // in the order of use
  const stateless = legacyStatelessFallback(factory, onError);

  const fetch: LegacyHttpHandler = async (request, options) => {
    end((session) => Date.now() - session.usedAt >= idleMs);
    const owner = JSON.stringify(options?.authInfo?.extra ?? null);
    const id = request.headers.get("mcp-session-id");
    if (id === null)
      return isInitializeRequest(options?.parsedBody)
        ? (await begin(request, owner)).handleRequest(request, options)
        : stateless(request, options);
    const session = sessions.get(id);
    // To another key the session does not exist.
    if (session?.owner !== owner) return rpcErrorResponse(404, -32001, "There is no such session. Initialize again.");
    sessions.delete(id);
    sessions.set(id, session);
    session.usedAt = Date.now();
    return session.transport.handleRequest(request, options);
  };

  async function begin(request: Request, owner: string): Promise<WebStandardStreamableHTTPServerTransport> {
    end(() => sessions.size >= maxSessions);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, { transport, owner, usedAt: Date.now() }),
    });
    const server = await factory({ era: "legacy", requestInfo: request });
    await server.connect(transport);
    const served = transport.onclose;
    transport.onclose = () => {
      if (transport.sessionId) sessions.delete(transport.sessionId);
      served?.();
    };
    return transport;
  }

  /** Ends sessions from the longest idle on, as long as the reason holds. */
  function end(reason: (session: Session) => boolean): void {
    for (const [id, session] of sessions) {
      if (!reason(session)) return;
      sessions.delete(id);
      session.transport.close().catch((error: Error) => onError?.(error));
    }
  }

  return {
    fetch,
    close: async () => void (await Promise.all([...sessions.values()].map(({ transport }) => transport.close()))),
  };
}
