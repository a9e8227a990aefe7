import { CairnError } from "../../model/errors.ts";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import type { ModelProcess } from "./model-process.ts";
import type { EmbedReply, EmbedRequest } from "./serve-embeddings.ts";

/** An embedder whose model runs in a process of its own. */
export interface ProcessEmbedder extends Embedder {
  /** The process id of the model's process while it is loaded. */
  pid(): number | undefined;
}

export interface ModelQueueOptions {
  readonly process: ModelProcess<EmbedRequest, EmbedReply>;
  readonly dimension: number;
  /** Characters of a text that are sent to the process: more never fit into the tokens that the model reads. */
  readonly textChars: number;
}

/** Texts per request to the process, few enough that a query never waits long for an index run. */
const SLICE_TEXTS = 16;
const SLICE_CHARS = 8_000;
/** A stream of queries of many processes must not stop all saves. */
const QUERIES_IN_A_ROW = 4;
const MAX_WAITING_TEXTS = 100_000;

interface Job {
  readonly texts: readonly string[];
  readonly vectors: Float32Array[];
  settled: boolean;
  readonly resolve: (vectors: Float32Array[]) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Queues the texts of all callers for one model process. Queries go first, but not more than a few in a row while other calls wait;
 * those are served in turn, in slices.
 */
export function modelQueue({
  process,
  dimension,
  textChars,
}: ModelQueueOptions): Pick<ProcessEmbedder, "embed" | "pid" | "close" | "textChars"> {
  const queries: Job[] = [];
  const documents: Job[] = [];
  let queriesInARow = 0;
  let working = false;
  let waitingTexts = 0;
  let closed = false;

  function next(): Job | undefined {
    const query = queriesInARow < QUERIES_IN_A_ROW || documents.length === 0 ? queries.shift() : undefined;
    queriesInARow = query ? queriesInARow + 1 : 0;
    return query ?? documents.shift();
  }

  /** Serves the requests round-robin, one slice each, so that a small one does not wait for a large one. */
  async function work(): Promise<void> {
    working = true;
    for (let job = next(); job !== undefined; job = next()) {
      if (job.settled) continue;
      const texts = nextSlice(job, textChars);
      try {
        if (closed) throw closedError();
        const reply = await process.ask({ texts });
        if ("failure" in reply) throw new CairnError("unavailable", `The local embedding model cannot run: ${reply.failure}`);
        if (!("vectors" in reply) || reply.vectors.length !== texts.length * dimension)
          throw new CairnError("internal", "The local embedding process returned a wrong number of values.");
        for (let start = 0; start < reply.vectors.length; start += dimension)
          job.vectors.push(reply.vectors.slice(start, start + dimension));
        if (job.vectors.length < job.texts.length) documents.push(job);
        else job.resolve(job.vectors);
      } catch (error) {
        // The failure affects every request; each caller decides whether to retry.
        for (const failed of [job, ...queries.splice(0), ...documents.splice(0)]) failed.reject(error);
      }
    }
    working = false;
  }

  function embed(texts: readonly string[], { signal, purpose }: EmbedOptions = {}): Promise<Float32Array[]> {
    return new Promise((resolve, reject) => {
      if (closed) throw closedError();
      signal?.throwIfAborted();
      if (texts.length === 0) return resolve([]);
      if (waitingTexts + texts.length > MAX_WAITING_TEXTS)
        throw new CairnError("rate_limited", "Too many texts are waiting to be embedded. Try again later.", {
          retryAfterMs: 1_000,
        });

      const job: Job = { texts, vectors: [], settled: false, resolve: settle(resolve), reject: settle(reject) };
      const abort = (): void => job.reject(signal?.reason);
      function settle<T>(settled: (value: T) => void): (value: T) => void {
        return (value) => {
          if (job.settled) return;
          job.settled = true;
          waitingTexts -= texts.length;
          signal?.removeEventListener("abort", abort);
          settled(value);
        };
      }
      waitingTexts += texts.length;
      signal?.addEventListener("abort", abort);
      (purpose === "query" ? queries : documents).push(job);
      if (!working) void work();
    });
  }

  return {
    embed,
    textChars,
    pid: process.pid,
    async close() {
      closed = true;
      await process.stop();
    },
  };
}

const closedError = (): CairnError => new CairnError("unavailable", "The local embedder is closed.");

function nextSlice({ texts, vectors }: Job, textChars: number): string[] {
  const slice: string[] = [];
  for (let index = vectors.length, chars = 0; index < texts.length && slice.length < SLICE_TEXTS && chars < SLICE_CHARS; index++) {
    const text = (texts[index] ?? "").slice(0, textChars);
    slice.push(text);
    chars += text.length;
  }
  return slice;
}
