import { connect, type Socket } from "node:net";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import type { Leader } from "../../ports/leader-lease.ts";
import { frameReader } from "./frame.ts";
import { decodeMessage, encodeMessage, FRAME_BYTES, identityOf, type Message, REQUESTS_IN_FLIGHT } from "./protocol.ts";
import { nextSlice } from "./slices.ts";

/**
 * Why there is no answer of the leader. `ended`: no process listens any more. `silent`: it hangs, or is much too slow. `dropped`: the
 * connection ended before its welcome. `refused`: it has another version, or does not speak this protocol. `failed`: it could not answer
 * this request.
 */
export type Loss = "ended" | "silent" | "dropped" | "refused" | "failed";
export type Reply<T> = { readonly value: T } | { readonly lost: Loss };

/** A connection to the process that embeds for this one. */
export interface EmbeddingClient {
  /** Rejects only with the reason of the caller's abort. */
  embed(texts: readonly string[], options: EmbedOptions): Promise<Reply<Float32Array[]>>;
  coverage(text: string, signal: AbortSignal): Promise<Reply<number>>;
  isOpen(): boolean;
  close(): void;
}

/** Turns of a timer, not times of the clock: a process that was suspended itself does not take its leader for hung. */
export interface ClientTiming {
  /** Milliseconds of a turn. A ping is sent in each turn in which a request waits. */
  readonly turnMs: number;
  /** Turns without any answer after which the leader counts as hung. */
  readonly silentTurns: number;
  /** Turns after which a request is given up although the leader answers pings. */
  readonly requestTurns: number;
  /** Milliseconds after which a request for the coverage is aborted: a search can do without. */
  readonly coverageMs: number;
}
export const CLIENT_TIMING: ClientTiming = { turnMs: 250, silentTurns: 12, requestTurns: 120, coverageMs: 1_000 };

interface Pending {
  turns: number;
  readonly settle: (reply: Reply<Message>) => void;
}

/** Connects to a leader and waits for its welcome. */
export async function embeddingClient(leader: Leader, model: Embedder, timing = CLIENT_TIMING): Promise<Reply<EmbeddingClient>> {
  const socket = connect(leader.address);
  const requests = requestsOn(socket, timing);
  const welcome = await requests.hello({ name: "hello", identity: identityOf(model), secret: leader.secret });
  if ("lost" in welcome) return welcome;
  if (welcome.value.name !== "welcome") return { lost: requests.close("refused") };

  async function embed(texts: readonly string[], { signal, purpose = "document" }: EmbedOptions): Promise<Reply<Float32Array[]>> {
    const vectors: Float32Array[] = [];
    while (vectors.length < texts.length) {
      const slice = nextSlice(texts, vectors.length, model.textChars);
      const reply = await requests.ask((id) => ({ name: "embed", id, purpose, texts: slice }), signal);
      if ("lost" in reply) return reply;
      const { value } = reply;
      if (value.name !== "vectors" || value.values.length !== slice.length * model.dimension) return { lost: requests.close("refused") };
      for (let start = 0; start < value.values.length; start += model.dimension)
        vectors.push(value.values.slice(start, start + model.dimension));
    }
    return { value: vectors };
  }

  return {
    value: {
      embed,
      async coverage(text, signal) {
        const cut = nextSlice([text], 0, model.textChars)[0]!;
        const reply = await requests.ask((id) => ({ name: "coverage", id, text: cut }), signal);
        if ("lost" in reply) return reply;
        return reply.value.name === "share" ? { value: reply.value.share } : { lost: requests.close("refused") };
      },
      isOpen: () => !socket.destroyed,
      close: () => void requests.close("ended"),
    },
  };
}

/** Requests that wait for their answer. The socket keeps this process alive only while there are some. */
function requestsOn(socket: Socket, { turnMs, silentTurns, requestTurns }: ClientTiming) {
  const pending = new Map<number | "hello", Pending>();
  const reader = frameReader(() => FRAME_BYTES);
  /** Requests beyond the number that a leader accepts at a time. Their number is bounded by the limit of embedding calls. */
  const waiting: (() => void)[] = [];
  let nextId = 0;
  let welcomed = false;
  let quietTurns = 0;
  let timer: NodeJS.Timeout | undefined;

  function close(loss: Loss): Loss {
    socket.destroy();
    clearInterval(timer);
    const lost = [...pending.values()];
    pending.clear();
    for (const { settle } of lost) settle({ lost: loss });
    for (const start of waiting.splice(0)) start();
    return loss;
  }

  function watch(): void {
    for (const [id, request] of pending) if (++request.turns > requestTurns) finish(id, { lost: "silent" });
    if (pending.size > 0 && ++quietTurns > silentTurns) close("silent");
    else if (!pending.has("hello")) send(encodeMessage({ name: "ping" }));
  }

  function send(frame: Buffer): void {
    if (!socket.destroyed) socket.write(frame);
  }

  function ask(frame: Buffer, id: number | "hello", signal?: AbortSignal): Promise<Reply<Message>> {
    return new Promise((resolve, reject) => {
      if (socket.destroyed) return resolve({ lost: "ended" });
      const abort = () => {
        if (!pending.has(id)) return;
        if (id !== "hello") send(encodeMessage({ name: "cancel", id }));
        finish(id, { lost: "failed" });
        reject(signal?.reason);
      };
      pending.set(id, {
        turns: 0,
        settle(reply) {
          signal?.removeEventListener("abort", abort);
          if (!signal?.aborted) resolve(reply);
        },
      });
      signal?.addEventListener("abort", abort, { once: true });
      if (pending.size === 1) {
        quietTurns = 0;
        socket.ref();
        timer = setInterval(watch, turnMs);
      }
      send(frame);
    });
  }

  function finish(id: number | "hello", reply: Reply<Message>): void {
    const request = pending.get(id);
    if (!request) return; // it was given up
    pending.delete(id);
    if (pending.size === 0) {
      clearInterval(timer);
      socket.unref();
    }
    request.settle(reply);
    waiting.shift()?.();
  }

  socket.on("data", (chunk) => {
    quietTurns = 0;
    try {
      for (const frame of reader.read(chunk)) {
        const message = decodeMessage(frame);
        if (message.name === "refusal") return void close("refused");
        if (message.name === "welcome") {
          welcomed = true;
          finish("hello", { value: message });
        } else if (message.name === "failure") finish(message.id, { lost: "failed" });
        else if (message.name === "vectors" || message.name === "share") finish(message.id, { value: message });
        else if (message.name !== "pong") return void close("refused");
      }
    } catch {
      close("refused");
    }
  });
  /** A leader that has too many connections or open files drops a new one. So does the kernel while it ends a leader. */
  function lossOf(code?: string): Loss {
    if (welcomed || code === "ECONNREFUSED" || code === "ENOENT") return "ended";
    return code === "EAGAIN" ? "silent" : "dropped"; // a full backlog
  }
  socket.on("error", (error: NodeJS.ErrnoException) => void close(lossOf(error.code)));
  socket.on("close", () => void close(lossOf()));

  return {
    close,
    hello: (message: Message) => ask(encodeMessage(message), "hello"),
    /** Waits while the leader has as many requests of this process as it accepts. */
    async ask(message: (id: number) => Message, signal: AbortSignal | undefined): Promise<Reply<Message>> {
      while (pending.size >= REQUESTS_IN_FLIGHT && !signal?.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      if (signal?.aborted) waiting.shift()?.(); // it was this request's turn
      signal?.throwIfAborted();
      nextId = (nextId + 1) % 0xffff_ffff;
      const frame = encodeMessage(message(nextId));
      return frame.length > FRAME_BYTES ? { lost: "failed" } : ask(frame, nextId, signal);
    },
  };
}
