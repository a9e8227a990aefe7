import { randomUUID } from "node:crypto";
import {
  isInitializeRequest,
  type LegacyHttpHandler,
  legacyStatelessFallback,
  type McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Caller } from "../operations/invoke.ts";
import { rpcErrorResponse } from "./rpc-response.ts";

export interface SessionOptions {
  readonly onError?: ((error: Error) => void) | undefined;
  /** Sessions of one key. Beyond this its own session that was idle longest ends; the client of that one starts a new one. */
  readonly maxSessionsPerKey?: number | undefined;
  /** Sessions of all keys. Beyond this the key with the most sessions loses the one that was idle longest. */
  readonly maxSessions?: number | undefined;
  readonly idleMs?: number | undefined;
  /**
   * Other servers serve the same clients, so that a session may have begun there. Its requests are served statelessly: a session holds
   * nothing but the calls under way on its server, and each request carries its own credential.
   */
  readonly takeOver?: boolean | undefined;
}

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  usedAt: number;
}

/** The sessions of one key by id, in the order of their last use. */
type KeySessions = Map<string, Session>;

/**
 * Serves the 2025 protocol over HTTP. A client that initializes gets a session, without which it could not cancel a call;
 * a request without a session is served statelessly. Limits hold per key, so that no key can end another key's sessions.
 */
export function legacySessions(
  factory: McpServerFactory,
  { onError, maxSessionsPerKey = 250, maxSessions = 5_000, idleMs = 24 * 60 * 60 * 1_000, takeOver = false }: SessionOptions = {},
): { fetch(request: Request, options: Parameters<LegacyHttpHandler>[1], caller: Caller): Promise<Response>; close(): Promise<void> } {
  const byKey = new Map<string, KeySessions>();
  const stateless = legacyStatelessFallback(factory, onError);

  async function begin(request: Request, key: string): Promise<WebStandardStreamableHTTPServerTransport> {
    makeRoom(key);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        const own = byKey.get(key) ?? new Map<string, Session>();
        byKey.set(key, own.set(id, { transport, usedAt: Date.now() }));
      },
    });
    const server = await factory({ era: "legacy", requestInfo: request });
    await server.connect(transport);
    const served = transport.onclose;
    transport.onclose = () => {
      if (transport.sessionId) forget(key, transport.sessionId);
      served?.();
    };
    return transport;
  }

  /** Ends sessions until one more of this key is within both limits. */
  function makeRoom(key: string): void {
    const countOf = (one: string) => byKey.get(one)?.size ?? 0;
    while (countOf(key) >= maxSessionsPerKey) endIdlest(key);
    let total = [...byKey.values()].reduce((sum, { size }) => sum + size, 0);
    for (; total >= maxSessions; total--)
      endIdlest([...byKey.keys()].reduce((most, one) => (countOf(one) > countOf(most) ? one : most), key));
  }

  function endIdlest(key: string): void {
    const [id, session] = byKey.get(key)!.entries().next().value!;
    end(key, id, session);
  }

  function endExpired(): void {
    for (const [key, sessions] of byKey)
      for (const [id, session] of sessions) {
        if (Date.now() - session.usedAt < idleMs) break; // those after it were used later
        end(key, id, session);
      }
  }

  function end(key: string, id: string, { transport }: Session): void {
    forget(key, id);
    transport.close().catch((error: Error) => onError?.(error));
  }

  function forget(key: string, id: string): void {
    const own = byKey.get(key);
    own?.delete(id);
    if (own?.size === 0) byKey.delete(key);
  }

  return {
    async fetch(request, options, caller) {
      endExpired();
      const key = caller.keyId ?? LOCAL;
      const id = request.headers.get("mcp-session-id");
      if (id === null)
        return isInitializeRequest(options?.parsedBody)
          ? (await begin(request, key)).handleRequest(request, options)
          : stateless(request, options);
      const own = byKey.get(key);
      const session = own?.get(id);
      // A session of another key does not exist for this one.
      if (!session) {
        if (takeOver && SESSION_ID.test(id))
          return request.method === "DELETE" ? new Response(null, { status: 204 }) : stateless(request, options);
        return rpcErrorResponse(404, -32001, "There is no such session. Initialize again.");
      }
      own!.delete(id);
      own!.set(id, session);
      session.usedAt = Date.now();
      return session.transport.handleRequest(request, options);
    },
    close: async () =>
      void (await Promise.all([...byKey.values()].flatMap((own) => [...own.values()].map(({ transport }) => transport.close())))),
  };
}

const SESSION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Groups the sessions of the local user, who has no key. Key ids are hexadecimal, so none collides with it. */
const LOCAL = "local";
