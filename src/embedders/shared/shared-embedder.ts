import { setTimeout as sleep } from "node:timers/promises";
import type { SharingFigures } from "../../model/embedding-figures.ts";
import { CairnError } from "../../model/errors.ts";
import type { Embedder } from "../../ports/embedder.ts";
import type { HeldLease, Leader, LeaderLease } from "../../ports/leader-lease.ts";
import { CLIENT_TIMING, type ClientTiming, type EmbeddingClient, embeddingClient, type Reply } from "./embedding-client.ts";
import { type EmbeddingServer, embeddingServer } from "./embedding-server.ts";

export interface SharedEmbedderOptions {
  readonly lease: LeaderLease;
  /** Whether this process may be elected. A command that ends soon may not: it only uses a leader. */
  readonly mayLead: boolean;
  readonly timing?: ClientTiming | undefined;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: (() => number) | undefined;
}

export interface SharedEmbedder extends Embedder {
  figures(): SharingFigures;
}

/** Attempts to reach a leader, each after another election, before a process embeds for itself. */
const ELECTIONS = 4;
/** Milliseconds before the next connection to a leader that dropped one: the next attempt shows whether it has ended. */
const DROPPED_MS = 50;
/** Milliseconds in which a leader is not asked after it did not answer in the time of a caller. */
const SLOW_MS = 60_000;

/**
 * Lets one process of a data folder embed for the others, so that they need not load the model. The first process that needs a vector is
 * elected. Without a leader that answers, each process embeds for itself: sharing saves memory and is never a condition of an answer.
 */
export function sharedEmbedder(inner: Embedder, options: SharedEmbedderOptions): SharedEmbedder {
  const { lease, mayLead, timing = CLIENT_TIMING, now = () => performance.now() } = options;
  let client: EmbeddingClient | undefined;
  let led: { readonly server: EmbeddingServer; readonly held: HeldLease } | undefined;
  let reaching: Promise<EmbeddingClient | undefined> | undefined;
  /** A leader that is not asked: for good if it refused, until it renews its lease if it was silent. */
  let avoided: string | undefined;
  let slowUntil = Number.NEGATIVE_INFINITY;
  let closed = false;
  let [sent, served, fallbacks] = [0, 0, 0];

  const isAvoided = ({ owner, renewedAtMs }: Leader) => avoided === owner || avoided === `${owner} ${renewedAtMs}`;

  /** Returns a connection to the leader; `undefined` if this process embeds for itself or leads. */
  async function reach(): Promise<EmbeddingClient | undefined> {
    if (closed || led) return undefined;
    if (client?.isOpen()) return client;
    reaching ??= elect()
      .catch(() => undefined) // such as a full disk or a folder that cannot be written
      .finally(() => {
        reaching = undefined;
      });
    client = await reaching;
    return client;
  }

  async function elect(): Promise<EmbeddingClient | undefined> {
    let ended: string | undefined;
    for (let attempt = 0; attempt < ELECTIONS && !closed; attempt++) {
      const leader = lease.read();
      if (leader && (leader.isElsewhere || isAvoided(leader))) return undefined;
      if (leader && leader.owner !== ended) {
        const reply = await embeddingClient(leader, inner, timing);
        if ("value" in reply) return reply.value;
        if (reply.lost === "dropped" && attempt + 1 < ELECTIONS) {
          await sleep(DROPPED_MS);
          continue;
        }
        if (reply.lost !== "ended") return void avoid(leader, reply.lost === "refused");
        ended = leader.owner;
      } else if (!mayLead || (await lead(ended))) return undefined;
    }
    return undefined;
  }

  /** Returns whether this process was elected. */
  async function lead(despite: string | undefined): Promise<boolean> {
    let server: EmbeddingServer | undefined;
    const stepDown = () => {
      if (led && led.server === server) led = undefined;
      void server?.close();
    };
    const held = await lease
      .acquire({
        async listen(place) {
          const onServed = (texts: number) => {
            served += texts;
          };
          server = await embeddingServer({ ...place, embedder: inner, onServed });
        },
        onLost: stepDown,
        despite,
      })
      .catch(async (error: unknown) => {
        await server?.close();
        throw error;
      });
    if (held && server) led = { server, held };
    return held !== undefined;
  }

  function avoid({ owner, renewedAtMs }: Leader, forGood: boolean): void {
    avoided = forGood ? owner : `${owner} ${renewedAtMs}`;
  }

  /** Asks the leader, and the next one if that ends. Returns `undefined` when this process has to embed for itself. */
  async function ask<T>(request: (client: EmbeddingClient) => Promise<Reply<T>>): Promise<T | undefined> {
    for (let attempt = 0; attempt < ELECTIONS && now() >= slowUntil; attempt++) {
      const reached = await reach();
      if (!reached) return undefined;
      const reply = await request(reached).catch((reason: unknown) => {
        if (reason instanceof Error && reason.name === "TimeoutError") slowUntil = now() + SLOW_MS;
        throw reason;
      });
      if ("value" in reply) {
        sent++;
        return reply.value;
      }
      if (reply.lost === "ended") continue;
      if (reply.lost !== "failed") {
        reached.close();
        const leader = lease.read();
        if (leader) avoid(leader, reply.lost === "refused");
      }
      break;
    }
    fallbacks++;
    return undefined;
  }

  const { coverage } = inner;
  return {
    model: inner.model,
    version: inner.version,
    dimension: inner.dimension,
    textChars: inner.textChars,
    threadModel: inner.threadModel,
    async embed(texts, options = {}) {
      if (closed) throw new CairnError("unavailable", "The embedder is closed.");
      options.signal?.throwIfAborted();
      if (texts.length === 0) return [];
      const vectors = await ask((reached) => reached.embed(texts, options));
      options.signal?.throwIfAborted();
      return vectors ?? inner.embed(texts, options);
    },
    coverage:
      coverage &&
      (async (text) => (await ask((reached) => reached.coverage(text, AbortSignal.timeout(timing.coverageMs)))) ?? coverage(text)),
    figures: () => ({ leads: led !== undefined, sent, served, fallbacks }),
    async close() {
      if (closed) return;
      closed = true;
      await reaching;
      client?.close();
      const ending = led;
      led = undefined;
      await ending?.held.release().catch(() => {}); // it expires
      await ending?.server.close();
      await inner.close();
    },
  };
}
