import type { Embedder } from "../../ports/embedder.ts";
import { splitIdentifiers } from "./static.ts";

/**
 * Combines two models for code by concatenating their vectors, so that the cosine is the mean of both cosines. MiniLM was trained on
 * prose and reads the first 256 tokens; the static table was trained on code and reads 512. They fail on different queries.
 */
export function pairedEmbedder(minilm: Embedder, table: Embedder): Embedder {
  const dimension = minilm.dimension + table.dimension;
  return {
    model: `${minilm.model}+${table.model}`,
    version: `${minilm.version}+${table.version}`,
    dimension,
    async embed(texts, options) {
      // MiniLM needs identifiers split: it would read parseJSONFile as meaningless pieces. The table splits them itself.
      const read = texts.map((text) => splitIdentifiers(text).replaceAll("_", " "));
      const [deep, quick] = await Promise.all([minilm.embed(read, options), table.embed(texts, options)]);
      return texts.map((_, index) => {
        const vector = new Float32Array(dimension);
        vector.set(deep[index]!);
        vector.set(quick[index]!, minilm.dimension);
        return vector.map((value) => value * Math.SQRT1_2);
      });
    },
    coverage: minilm.coverage,
    async close() {
      await Promise.all([minilm.close(), table.close()]);
    },
  };
}
