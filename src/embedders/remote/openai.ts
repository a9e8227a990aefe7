import { z } from "zod";
import { CairnError } from "../../model/errors.ts";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import { estimateTokens } from "../../text/estimate-tokens.ts";
import { askHalving, batches } from "./batches.ts";
import { breaker } from "./breaker.ts";
import { callProvider, type ProviderOptions, type Refusal } from "./call.ts";
import { cutToTokens } from "./cut-to-tokens.ts";
import { pace } from "./pace.ts";
import { toUnitVectors } from "./vectors.ts";

export interface OpenAiOptions extends Partial<Pick<ProviderOptions, "policy" | "breaker" | "pace" | "fetch" | "sleep" | "random">> {
  readonly apiKey: string | undefined;
  /** URL of any server with the same API. */
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  /** Shorter vectors than the model's default, where it supports them. */
  readonly dimensions?: number | undefined;
}

/** Limits of the API: texts per request, tokens per text, tokens per request. The last has a margin, because tokens are estimated. */
const TEXTS_MAX = 2_048;
const TEXT_TOKENS_MAX = 8_191;
const REQUEST_TOKENS_MAX = 250_000;
/** Requests per minute of the lowest paid tier. */
const PER_MINUTE = 3_000;

const OWN_DIMENSIONS: Readonly<Record<string, number>> = {
  "text-embedding-3-small": 1536,
  "text-embedding-3-large": 3072,
  "text-embedding-ada-002": 1536,
};

/** Token count of the response. Compatible servers may omit it or report an invalid one; their vectors are used all the same. */
const Tokens = z.int().min(0).optional().catch(undefined);
const Answer = z.object({
  data: z.array(z.object({ index: z.int(), embedding: z.union([z.string(), z.array(z.number())]) })),
  usage: z.object({ total_tokens: Tokens, prompt_tokens: Tokens }).optional().catch(undefined),
});

/** Opens an embedder that calls OpenAI or a server with the same API. */
export function openAiEmbedder(options: OpenAiOptions): Embedder {
  const { apiKey, baseUrl = "https://api.openai.com/v1", model = "text-embedding-3-small", dimensions } = options;
  const dimension = dimensions ?? OWN_DIMENSIONS[model];
  if (dimension === undefined)
    throw new CairnError("invalid_input", `embedder.dimensions: set the number of dimensions of ${JSON.stringify(model)}.`);
  const provider: ProviderOptions = {
    name: "The OpenAI embeddings service",
    breaker: options.breaker ?? breaker(),
    pace: options.pace ?? pace({ perMinute: PER_MINUTE }),
    refusalOf,
    ...callOptions(options),
  };

  async function ask(texts: readonly string[], { signal, onTokens }: EmbedOptions): Promise<Float32Array[]> {
    const answer = Answer.safeParse(
      await callProvider(provider, {
        url: `${baseUrl.replace(/(?<!\/)\/+$/, "")}/embeddings`,
        method: "POST",
        headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
        body: { model, input: texts, encoding_format: "base64", ...(dimensions === undefined ? {} : { dimensions }) },
        signal,
      }),
    );
    if (!answer.success) throw new CairnError("unavailable", "The OpenAI embeddings service returned an unexpected response.");
    const { total_tokens, prompt_tokens } = answer.data.usage ?? {};
    onTokens?.(total_tokens ?? prompt_tokens ?? texts.reduce((sum, text) => sum + estimateTokens(text), 0));
    const inOrder = answer.data.data
      .sort((a, b) => a.index - b.index)
      .map(({ embedding }) => (typeof embedding === "string" ? fromBase64(embedding) : embedding));
    return toUnitVectors("The OpenAI embeddings service", inOrder, texts.length, dimension!);
  }

  return {
    model,
    version: dimensions === undefined ? "1" : `1-${dimensions}`,
    dimension,
    async embed(texts, options = {}) {
      const sized = texts.map((text) => cutToTokens(text || " ", TEXT_TOKENS_MAX)); // the service rejects empty texts
      const vectors: Float32Array[] = [];
      for (const { start, end } of batches(
        sized.map(({ tokens }) => tokens),
        { texts: TEXTS_MAX, tokens: REQUEST_TOKENS_MAX },
      ))
        vectors.push(
          ...(await askHalving(
            sized.slice(start, end).map(({ text }) => text),
            (part) => ask(part, options),
          )),
        );
      return vectors;
    },
    async close() {},
  };
}

function refusalOf(status: number, body: string): Refusal {
  try {
    const { error } = JSON.parse(body);
    // An exhausted quota returns 429 too, and a retry does not help.
    if (typeof error?.message === "string")
      return { status, message: error.message, retry: error.code === "insufficient_quota" ? false : undefined };
  } catch {
    // Not the service's JSON, such as a page of a proxy: the status is all there is.
  }
  return { status, message: `status ${status}` };
}

function fromBase64(text: string): Float32Array {
  const bytes = Buffer.from(text, "base64");
  const vector = new Float32Array(Math.floor(bytes.byteLength / 4));
  for (let i = 0; i < vector.length; i++) vector[i] = bytes.readFloatLE(i * 4);
  return vector;
}

function callOptions({ policy, fetch, sleep, random }: OpenAiOptions): Partial<ProviderOptions> {
  return { ...(policy && { policy }), ...(fetch && { fetch }), ...(sleep && { sleep }), ...(random && { random }) };
}
