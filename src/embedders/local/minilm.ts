import { builtFile } from "../../files/built-file.ts";
import { CairnError } from "../../model/errors.ts";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import type { MinilmReply, MinilmRequest } from "./minilm-process.ts";
import { modelProcess } from "./model-process.ts";

export interface MinilmOptions {
  /** Milliseconds that an idle model stays in memory; default five minutes. */
  readonly idleMs?: number;
  /** Folder of model.onnx and tokenizer.json; default: the files of the build. */
  readonly modelDir?: string;
}

export interface MinilmEmbedder extends Embedder {
  /** The process id of the model's process while it is loaded. */
  pid(): number | undefined;
}

const ENTRY = builtFile("embedders/local/minilm-process.js");
const IDLE_MS = 5 * 60_000;
const DIMENSION = 384;
// Texts per request to the process, few enough that a query never waits long for an index run.
const SLICE_TEXTS = 16;
const SLICE_CHARS = 8_000;
// Characters sent per text: 256 tokens never need more.
const TEXT_CHARS = 8_000;
const MAX_WAITING_TEXTS = 100_000;

interface Job {
  readonly texts: readonly string[];
  readonly vectors: Float32Array[];
  settled: boolean;
  readonly resolve: (vectors: Float32Array[]) => void;
  readonly reject: (reason: unknown) => void;
}

/** Opens all-MiniLM-L6-v2 with int8 weights, in a process of its own that starts on first use and ends when idle. */
export function minilmEmbedder({ idleMs = IDLE_MS, modelDir = builtFile("models/minilm") }: MinilmOptions = {}): MinilmEmbedder {
  const model = modelProcess<MinilmRequest, MinilmReply>({ entry: ENTRY, args: [modelDir], idleMs });
  const jobs: Job[] = [];
  let working = false;
  let waitingTexts = 0;
  let closed = false;

  /** Serves the requests round-robin, one slice each, so that a small one does not wait for a large one. */
  async function work(): Promise<void> {
    working = true;
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
      if (job.settled) continue;
      const texts = nextSlice(job);
      try {
        if (closed) throw closedError();
        const reply = await model.ask({ texts });
        if ("failure" in reply)
          throw new CairnError("unavailable", `The local embedding model cannot run on this machine: ${reply.failure}`);
        if (!("vectors" in reply) || reply.vectors.length !== texts.length * DIMENSION)
          throw new CairnError("internal", "The local embedding process returned a wrong number of values.");
        for (let start = 0; start < reply.vectors.length; start += DIMENSION)
          job.vectors.push(reply.vectors.slice(start, start + DIMENSION));
        if (job.vectors.length < job.texts.length) jobs.push(job);
        else job.resolve(job.vectors);
      } catch (error) {
        // The failure affects every request; each caller decides whether to retry.
        for (const failed of [job, ...jobs.splice(0)]) failed.reject(error);
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
      if (purpose === "query") jobs.unshift(job);
      else jobs.push(job);
      if (!working) void work();
    });
  }

  return {
    model: "all-MiniLM-L6-v2",
    version: "int8-1",
    dimension: DIMENSION,
    embed,
    pid: model.pid,
    async close() {
      closed = true;
      await model.stop();
    },
  };
}

/** Returns why the native runtime cannot be loaded on this machine, or `undefined` if it can. */
export async function minilmObstacle({
  modelDir = builtFile("models/minilm"),
}: Pick<MinilmOptions, "modelDir"> = {}): Promise<string | undefined> {
  const model = modelProcess<MinilmRequest, MinilmReply>({ entry: ENTRY, args: [modelDir], idleMs: 0 });
  try {
    const reply = await model.ask({});
    return "failure" in reply ? reply.failure : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await model.stop();
  }
}

const closedError = (): CairnError => new CairnError("unavailable", "The local embedder is closed.");

function nextSlice({ texts, vectors }: Job): string[] {
  const slice: string[] = [];
  for (let index = vectors.length, chars = 0; index < texts.length && slice.length < SLICE_TEXTS && chars < SLICE_CHARS; index++) {
    const text = (texts[index] ?? "").slice(0, TEXT_CHARS);
    slice.push(text);
    chars += text.length;
  }
  return slice;
}
