import { Agent, request as httpRequest } from "node:http";
import { connect } from "node:net";

export interface AttackRequest {
  readonly method: string;
  /** As it goes over the wire, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer | undefined;
  /** Bytes to write to a socket instead, for requests that no HTTP client would make. */
  readonly raw?: Buffer | undefined;
}

export interface AttackAnswer {
  /** 0 when the connection closed without an answer. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Status line, headers and body: every byte that the caller received, as Latin-1. */
  readonly bytes: string;
  readonly startedAt: number;
  readonly tookMs: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
/** Longer than any limit that an attacked operation documents for a call that ends by itself. */
const GIVE_UP_MS = 120_000;

/** Sends one request to loopback and reads all of the answer. */
export function send(port: number, attack: AttackRequest): Promise<AttackAnswer> {
  return attack.raw ? sendRaw(port, attack.raw) : sendHttp(port, attack);
}

function sendHttp(port: number, attack: AttackRequest): Promise<AttackAnswer> {
  const { method, path, headers, body } = attack;
  const startedAt = Date.now();
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const options = { host: "127.0.0.1", port, method, path, headers: { ...length, ...headers } as Record<string, string>, agent };
    const sent = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const received = Buffer.concat(chunks);
        const head = response.rawHeaders.join("\n");
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          body: received.toString("utf8"),
          bytes: `${response.statusMessage}\n${head}\n\n${received.toString("latin1")}`,
          startedAt,
          tookMs: performance.now() - started,
        });
      });
    });
    sent.setTimeout(GIVE_UP_MS, () => sent.destroy(new Error(`No answer within ${GIVE_UP_MS} ms to ${method} ${path.slice(0, 200)}`)));
    sent.on("error", (error: NodeJS.ErrnoException) => {
      // The server may close an idle connection at the moment it is used again: that says nothing about the request.
      if (error.code === "ECONNRESET" && sent.reusedSocket) sendHttp(port, attack).then(resolve, reject);
      else if (error.code === "ECONNRESET")
        resolve({ status: 0, headers: {}, body: "", bytes: "", startedAt, tookMs: performance.now() - started });
      else reject(error);
    });
    sent.end(body);
  });
}

function sendRaw(port: number, raw: Buffer): Promise<AttackAnswer> {
  const startedAt = Date.now();
  const started = performance.now();
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.end(raw));
    socket.setTimeout(GIVE_UP_MS, () => socket.destroy());
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {}); // the server may reset the connection; what came before counts
    socket.on("close", () => {
      const bytes = Buffer.concat(chunks).toString("latin1");
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes)?.[1] ?? 0);
      const body = Buffer.from(bytes.slice(bytes.indexOf("\r\n\r\n") + 4), "latin1").toString("utf8");
      resolve({ status, headers: {}, body, bytes, startedAt, tookMs: performance.now() - started });
    });
  });
}

/** Sends requests with a bounded number in flight, in order of the list. */
export async function sendAll<T>(items: readonly T[], inFlight: number, attack: (item: T) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let next = iterator.next(); !next.done; next = iterator.next()) await attack(next.value);
    }),
  );
}
