import { timingSafeEqual } from "node:crypto";
import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Embedder } from "../../ports/embedder.ts";
import type { ListeningPlace } from "../../ports/leader-lease.ts";
import { fairQueue } from "./fair-queue.ts";
import { frameReader } from "./frame.ts";
import {
  decodeMessage,
  differenceOf,
  encodeMessage,
  FRAME_BYTES,
  HELLO_BYTES,
  identityOf,
  type Message,
  REQUESTS_IN_FLIGHT,
} from "./protocol.ts";

export interface EmbeddingServerOptions extends ListeningPlace {
  readonly embedder: Embedder;
  /** Called with the number of texts after each request that was answered. */
  readonly onServed: (texts: number) => void;
}

/** Embeds for other processes of this user. */
export interface EmbeddingServer {
  /** Ends all connections: their requests are repeated elsewhere. */
  close(): Promise<void>;
}

/** More processes than this embed for themselves. */
const CONNECTIONS_MAX = 128;
/** Milliseconds in which a new connection must have said hello. */
const HELLO_MS = 5_000;

type Request = Extract<Message, { name: "embed" | "coverage" }>;
interface Work {
  readonly request: Request;
  readonly connection: Connection;
  readonly abort: AbortController;
}
interface Connection {
  send(message: Message, sent?: () => void): void;
  readonly inFlight: Map<number, AbortController>;
}

/**
 * Listens on a socket that only this user can open. One slice of texts is in the model at a time, and the event loop gets a turn before
 * each, so that calls of this process wait for at most one slice of all others.
 */
export async function embeddingServer({ embedder, address, secret, onServed }: EmbeddingServerOptions): Promise<EmbeddingServer> {
  const queue = fairQueue<Connection, Work>();
  const sockets = new Set<Socket>();
  let working = false;

  async function work(): Promise<void> {
    if (working) return;
    working = true;
    for (let next = queue.take(); next !== undefined; next = queue.take()) {
      await nextTurn();
      await serve(next);
    }
    working = false;
  }

  async function serve({ request, connection, abort }: Work): Promise<void> {
    const done = () => void connection.inFlight.delete(request.id); // after the kernel took the answer: a peer that does not read cannot ask on
    if (abort.signal.aborted) return done();
    const reply = await answer(embedder, request, abort.signal);
    connection.send(reply, done);
    if (reply.name === "vectors" && request.name === "embed") onServed(request.texts.length);
  }

  function accept(socket: Socket): void {
    sockets.add(socket);
    socket.unref(); // other processes do not keep this one alive
    let known = false;
    const reader = frameReader(() => (known ? FRAME_BYTES : HELLO_BYTES));
    const connection: Connection = {
      inFlight: new Map(),
      send: (message, sent) => void socket.write(encodeMessage(message), sent),
    };
    const helloTimer = setTimeout(() => socket.destroy(), HELLO_MS);
    helloTimer.unref();

    function receive(message: Message): void {
      if (!known) {
        const problem = message.name === "hello" ? refusalOf(message) : "protocol";
        known = problem === undefined;
        clearTimeout(helloTimer);
        if (problem === undefined) connection.send({ name: "welcome" });
        else socket.end(encodeMessage({ name: "refusal", reason: problem }));
      } else if (message.name === "ping") connection.send({ name: "pong" });
      else if (message.name === "cancel") connection.inFlight.get(message.id)?.abort();
      else if (message.name === "embed" || message.name === "coverage") enqueue(message);
      else socket.destroy();
    }

    function enqueue(request: Request): void {
      if (connection.inFlight.size >= REQUESTS_IN_FLIGHT || connection.inFlight.has(request.id)) return void socket.destroy();
      const abort = new AbortController();
      connection.inFlight.set(request.id, abort);
      const item = { request, connection, abort };
      if (request.name === "coverage") return void serve(item); // it reads the vocabulary, not the model
      queue.push(connection, item, request.purpose === "query");
      void work();
    }

    socket.on("data", (chunk) => {
      try {
        for (const frame of reader.read(chunk)) if (!socket.destroyed) receive(decodeMessage(frame));
      } catch {
        socket.destroy(); // not a peer that speaks this protocol
      }
    });
    socket.on("error", () => {}); // «close» follows
    socket.on("close", () => {
      clearTimeout(helloTimer);
      sockets.delete(socket);
      queue.drop(connection);
      for (const abort of connection.inFlight.values()) abort.abort();
    });
  }

  const identity = identityOf(embedder);
  function refusalOf(hello: Extract<Message, { name: "hello" }>): string | undefined {
    const [given, expected] = [Buffer.from(hello.secret), Buffer.from(secret)];
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return "secret";
    return differenceOf(identity, hello.identity);
  }

  const server = createServer(accept);
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, address);
  server.unref();
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve()); // also removes the socket's file
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function answer(embedder: Embedder, request: Request, signal: AbortSignal): Promise<Message> {
  const { id } = request;
  try {
    if (request.name === "coverage") return { name: "share", id, share: (await embedder.coverage?.(request.text)) ?? 1 };
    const vectors = await embedder.embed(request.texts, { purpose: request.purpose, signal });
    const values = new Float32Array(vectors.length * embedder.dimension);
    for (const [index, vector] of vectors.entries()) values.set(vector, index * embedder.dimension);
    return { name: "vectors", id, values };
  } catch {
    return { name: "failure", id };
  }
}

async function listen(server: Server, address: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      server.removeListener("error", reject);
      server.on("error", () => {}); // a connection that could not be accepted; its process embeds for itself
      resolve();
    });
  });
  // Its folder already keeps other users out. A named pipe of Windows has no mode.
  if (process.platform !== "win32") chmodSync(address, 0o600);
}
