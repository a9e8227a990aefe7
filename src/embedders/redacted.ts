import { setImmediate as nextTurn } from "node:timers/promises";
import type { Embedder } from "../ports/embedder.ts";
import type { Redact } from "../text/redact.ts";

/** Redacts about this many characters before other work of the process gets a turn: a few milliseconds. */
const CHARS_PER_TURN = 50_000;

/**
 * Removes secrets from every text before the embedder sees it. `open` puts this layer around every embedder, so a caller
 * cannot send a secret to a provider by forgetting to redact. It is the outermost layer: the cache holds redacted texts only.
 */
export function redactedEmbedder(inner: Embedder, redact: Redact): Embedder {
  return {
    model: inner.model,
    version: inner.version,
    dimension: inner.dimension,
    async embed(texts, options) {
      const clean: string[] = [];
      let chars = 0;
      for (const text of texts) {
        chars += text.length;
        if (chars > CHARS_PER_TURN && clean.length > 0) {
          await nextTurn();
          options?.signal?.throwIfAborted();
          chars = text.length;
        }
        clean.push(redact(text).text);
      }
      return inner.embed(clean, options);
    },
    close: () => inner.close(),
  };
}
