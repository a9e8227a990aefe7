import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import { openFilesBudget } from "../files/open-files.ts";
import { CairnError } from "../model/errors.ts";
import { startTelemetry } from "../telemetry/start.ts";
import { DEFAULT_MAX_CONCURRENT, type HttpOptions, httpHandler } from "./app.ts";

export interface ServeOptions extends Omit<HttpOptions, "isDraining" | "closing" | "metrics"> {
  /** The text of `/metrics` where the process has telemetry of its own; otherwise the server starts and ends it. */
  readonly metrics?: () => Promise<string>;
  /** Loopback by default. */
  readonly host?: string;
  /** 0 for any free port. */
  readonly port?: number;
  /** How long a client may take to send its request, body included. Slower ones are answered with 408. */
  readonly requestTimeoutMs?: number;
  /** How long requests in progress may take to end when the server is closed. */
  readonly drainMs?: number;
}

export interface HttpServer {
  /** `http://127.0.0.1:7483`, with the port that was really taken. */
  readonly url: string;
  readonly port: number;
  /** Takes no more requests, lets those in progress end, then closes. */
  close(): Promise<void>;
}

export const DEFAULT_PORT = 7483;

/** Serves HTTP from Node. */
export async function serve(options: ServeOptions): Promise<HttpServer> {
  const { host = "127.0.0.1", port = DEFAULT_PORT, requestTimeoutMs = 30_000, drainMs = 10_000 } = options;
  const closing = new AbortController();
  const telemetry = options.metrics ? undefined : await startTelemetry({ prometheus: true, log: options.log });
  const metrics = options.metrics ?? (() => telemetry!.prometheus());
  const handle = httpHandler({ ...options, metrics, isDraining: () => closing.signal.aborted, closing: closing.signal });
  const server = createAdaptorServer({
    hostname: host,
    fetch: async (request, env) => {
      const { incoming, outgoing } = env as HttpBindings;
      if (closing.signal.aborted) outgoing.setHeader("connection", "close");
      return handle(request, { remoteAddress: incoming.socket.remoteAddress });
    },
    serverOptions: {
      requestTimeout: requestTimeoutMs,
      headersTimeout: Math.min(10_000, requestTimeoutMs),
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
      keepAliveTimeout: 10_000,
      maxHeaderSize: 16 * 1024,
    },
  }) as Server;
  // Idle connections cost memory too, so they are bounded as well, at more than the requests: those over the limit get an answer.
  // Under a low limit of open files they must not take the descriptors that databases need.
  const connections = Math.max(1_024, 4 * (options.maxConcurrent ?? DEFAULT_MAX_CONCURRENT));
  server.maxConnections = Math.min(connections, openFilesBudget().sockets);
  try {
    await listen(server, host, port);
  } catch (error) {
    await telemetry?.close();
    throw error;
  }

  const taken = (server.address() as AddressInfo).port;
  let closed: Promise<void> | undefined;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}`,
    port: taken,
    close() {
      closed ??= (async () => {
        closing.abort();
        const ended = new Promise<void>((resolve) => server.close(() => resolve()));
        server.closeIdleConnections();
        const sweep = setInterval(() => server.closeIdleConnections(), 50); // connections become idle as their requests end
        const deadline = setTimeout(() => server.closeAllConnections(), drainMs);
        await ended;
        clearInterval(sweep);
        clearTimeout(deadline);
        await telemetry?.close();
      })();
      return closed;
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, () => resolve());
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): CairnError {
  const problems: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is in use. Stop what uses it, or choose another port.`,
    EACCES: `Port ${port} on ${host} may not be used by this user. Choose one above 1023.`,
    EADDRNOTAVAIL: `This machine has no address ${host}. Choose one it has, such as 127.0.0.1.`,
    ENOTFOUND: `The host name ${host} is not known. Choose an address of this machine, such as 127.0.0.1.`,
  };
  const known = error.code === undefined ? undefined : problems[error.code];
  return new CairnError(known ? "unavailable" : "internal", known ?? `The server could not start on ${host}:${port}: ${error.message}`, {
    cause: error,
  });
}
