import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Era, newClient } from "../mcp/connections.ts";

export type Answer = Record<string, unknown>;

/** Calls a team through its balancer, and repeats a call whose connection broke. Every call is safe to repeat. */
export interface TeamClient {
  post(path: string, body: Answer): Promise<Answer>;
  get(path: string): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** Connects an MCP client of this protocol version. Its calls are repeated too. */
  mcp(era: Era): Promise<{ call(tool: string, input: Answer): Promise<Answer>; close(): Promise<void> }>;
  /** Calls that were repeated. */
  readonly repeats: number;
}

export interface TeamClientOptions {
  readonly url: string;
  readonly key: string;
  /** Also repeats calls that a node answers with 503, as a client does while the database restarts. */
  readonly databaseRestarts: boolean;
}

/** Milliseconds for one attempt: a balancer gives up on a node that does not answer. */
const ATTEMPT_MS = 20_000;

export function teamClient({ url, key, databaseRestarts }: TeamClientOptions): TeamClient {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  let repeats = 0;

  async function repeat<T>(once: () => Promise<T>, isRepeatable: (error: unknown) => boolean): Promise<T> {
    for (;;)
      try {
        return await once();
      } catch (error) {
        if (!isRepeatable(error)) throw error;
        repeats++;
        await sleep(20);
      }
  }

  const send = (method: string, path: string, body?: Answer) =>
    repeat(
      async () => {
        const init = { method, headers, signal: AbortSignal.timeout(ATTEMPT_MS), ...(body && { body: JSON.stringify(body) }) };
        const response = await fetch(url + path, init);
        const text = await response.text();
        if (!response.ok) throw new Refusal(response.status, `${method} ${path}: ${response.status} ${text}`);
        return JSON.parse(text) as Answer;
      },
      (error) => !(error instanceof Refusal) || error.status === 502 || (databaseRestarts && error.status === 503),
    );

  return {
    post: (path, body) => send("POST", path, body),
    get: (path) => send("GET", path),
    delete: (path) => send("DELETE", path),
    get repeats() {
      return repeats;
    },
    async mcp(era) {
      const isRepeatable = (error: unknown) => isBroken(error) || (databaseRestarts && statusOf(error) === 503);
      const client = await repeat(() => connectMcp(url, key, era), isRepeatable);
      return {
        call: (tool, input) =>
          repeat(async () => {
            const answer = await client.callTool({ name: tool, arguments: input }, { timeout: ATTEMPT_MS });
            if (answer.isError) throw new Refusal(isUnavailable(answer) ? 503 : 400, `${era} ${tool}: ${JSON.stringify(answer.content)}`);
            return answer.structuredContent as Answer;
          }, isRepeatable),
        close: () => client.close(),
      };
    },
  };
}

/** Returns whether the connection of an MCP call failed: it could not be made, the balancer reported 502, or no answer came. */
function isBroken(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return error instanceof TypeError || code === "REQUEST_TIMEOUT" || code === "CONNECTION_CLOSED" || statusOf(error) === 502;
}

/** Returns the HTTP status of a refusal: of a tool, or of the request itself, such as one whose key could not be checked. */
function statusOf(error: unknown): unknown {
  return error instanceof Refusal ? error.status : (error as { data?: { status?: unknown } }).data?.status;
}

async function connectMcp(url: string, key: string, era: Era): Promise<Client> {
  const client = newClient(era);
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }), { timeout: ATTEMPT_MS });
  return client;
}

const isUnavailable = (answer: unknown) => JSON.stringify(answer).toLowerCase().includes("unavailable");

/** An answer that is not a success. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const newIdempotencyKey = (): string => randomUUID();
