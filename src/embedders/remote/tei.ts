import { z } from "zod";
import { CairnError } from "../../model/errors.ts";
import type { Embedder } from "../../ports/embedder.ts";
import { estimateTokens } from "../../text/estimate-tokens.ts";
import { askHalving, batches } from "./batches.ts";
import { breaker } from "./breaker.ts";
import { callProvider, type ProviderOptions, type Refusal, RequestTooLarge } from "./call.ts";
import { pace } from "./pace.ts";
import { toUnitVectors } from "./vectors.ts";

export interface TeiOptions extends Partial<Pick<ProviderOptions, "policy" | "breaker" | "pace" | "fetch" | "sleep" | "random">> {
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** The model of the server; `/info` must report the same. */
  readonly model?: string | undefined;
  readonly dimensions?: number | undefined;
}

/** Characters per request: with JSON escapes it stays below the server's body limit of 2 MB. */
const REQUEST_TOKENS_MAX = 300_000;
const TEXTS_DEFAULT = 32;
const DIMENSION = 384;

const Info = z.object({
  model_id: z.string(),
  max_client_batch_size: z.int().min(1).default(TEXTS_DEFAULT),
  max_input_length: z.int().optional(),
});
const Vectors = z.array(z.array(z.number()));

/** Opens an embedder that calls a Text Embeddings Inference server. */
export function teiEmbedder(options: TeiOptions): Embedder {
  const { apiKey, model = "BAAI/bge-small-en-v1.5", dimensions = DIMENSION } = options;
  const baseUrl = options.baseUrl.replace(/(?<!\/)\/+$/, "");
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  const { policy, fetch, sleep, random } = options;
  const provider: ProviderOptions = {
    name: "The TEI server",
    breaker: options.breaker ?? breaker(),
    pace: options.pace ?? pace({ perMinute: 6_000 }),
    refusalOf,
    ...(policy && { policy }),
    ...(fetch && { fetch }),
    ...(sleep && { sleep }),
    ...(random && { random }),
  };
  let info: Promise<z.output<typeof Info>> | undefined;

  async function readInfo(signal: AbortSignal | undefined): Promise<z.output<typeof Info>> {
    const parsed = Info.safeParse(await callProvider(provider, { url: `${baseUrl}/info`, method: "GET", headers, signal }));
    if (!parsed.success)
      throw new CairnError("unavailable", "The TEI server returned an unexpected /info. Check that embedder.base_url names a TEI server.");
    if (parsed.data.model_id !== model)
      throw new CairnError(
        "unavailable",
        `The TEI server runs ${parsed.data.model_id}, not ${model}. Set embedder.model, or start the server with that model.`,
      );
    return parsed.data;
  }

  async function ask(texts: readonly string[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    const body = { inputs: texts, normalize: true, truncate: true };
    const parsed = Vectors.safeParse(
      await callProvider(provider, { url: `${baseUrl}/embed`, method: "POST", headers, body, signal }).catch(batchTooLarge),
    );
    if (!parsed.success) throw new CairnError("unavailable", "The TEI server returned an unexpected response.");
    return toUnitVectors("The TEI server", parsed.data, texts.length, dimensions);
  }

  return {
    model,
    version: "1",
    dimension: dimensions,
    async embed(texts, { signal } = {}) {
      info ??= readInfo(signal);
      const { max_client_batch_size } = await info.catch((error) => {
        info = undefined; // the next call asks again
        throw error;
      });
      const sized = texts.map((text) => text || " ");
      const vectors: Float32Array[] = [];
      for (const { start, end } of batches(sized.map(estimateTokens), { texts: max_client_batch_size, tokens: REQUEST_TOKENS_MAX }))
        vectors.push(...(await askHalving(sized.slice(start, end), (part) => ask(part, signal))));
      return vectors;
    },
    async close() {},
  };
}

/** Turns the validation error for an oversized batch into one that makes the caller split it. */
function batchTooLarge(error: unknown): never {
  if (error instanceof CairnError && error.details?.status === 422 && /batch size/i.test(error.message))
    throw new RequestTooLarge(error.message);
  throw error;
}

function refusalOf(status: number, body: string): Refusal {
  try {
    const { error, error_type } = JSON.parse(body);
    if (typeof error === "string") return { status, message: error_type ? `${error_type}: ${error}` : error };
  } catch {
    // Not TEI's JSON, such as the 413 of the body limit.
  }
  return { status, message: `status ${status}` };
}
