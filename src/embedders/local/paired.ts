import type { Embedder } from "../../ports/embedder.ts";
import { splitIdentifiers } from "./static.ts";

/**
 * Two models as one, for code: their vectors end to end, so that the cosine is the mean of both cosines. MiniLM was trained on prose
 * and reads the first 256 tokens, the static table on words of code and reads twice as many; they err on different questions.
 */
export function pairedEmbedder(minilm: Embedder, table: Embedder): Embedder {
  const dimension = minilm.dimension + table.dimension;
  return {
    model: `${minilm.model}+${table.model}`,
    version: `${minilm.version}+${table.version}`,
    dimension,
    async embed(texts, options) {
      // The table splits identifiers by itself. Without it MiniLM would read parseJSONFile as pieces that mean nothing.
      const read = texts.map((text) => splitIdentifiers(text).replaceAll("_", " "));
      const [deep, quick] = await Promise.all([minilm.embed(read, options), table.embed(texts, options)]);
      return texts.map((_, index) => {
        const vector = new Float32Array(dimension);
        vector.set(deep[index]!);
        vector.set(quick[index]!, minilm.dimension);
        return vector.map((value) => value * Math.SQRT1_2);
      });
    },
    async close() {
      await Promise.all([minilm.close(), table.close()]);
    },
  };
}
