import { extractQueryTerms, extractTerms } from "./terms.ts";

/** Ranks texts in memory by Okapi BM25: the keyword ranking of the in-memory stores and the baseline of the benchmark. */
export function bm25(
  documents: ReadonlyMap<string, string>,
  query: string,
  { k1 = 1.2, b = 0.75 } = {},
): { id: string; score: number; matched: number }[] {
  const wanted = extractQueryTerms(query);
  const counted = [...documents].map(([id, text]) => ({ id, words: extractTerms(text) }));
  const meanLength = counted.reduce((sum, { words }) => sum + words.length, 0) / Math.max(1, counted.length);
  const scores = new Map<string, number>();
  const hits = new Map<string, number>();
  for (const word of wanted) {
    const frequencies = counted.flatMap(({ id, words }) => {
      const frequency = words.reduce((count, candidate) => count + (candidate === word ? 1 : 0), 0);
      return frequency > 0 ? [{ id, frequency, length: words.length }] : [];
    });
    const idf = Math.log(1 + (counted.length - frequencies.length + 0.5) / (frequencies.length + 0.5));
    for (const { id, frequency, length } of frequencies) {
      const score = (idf * frequency * (k1 + 1)) / (frequency + k1 * (1 - b + (b * length) / meanLength));
      hits.set(id, (hits.get(id) ?? 0) + 1);
      scores.set(id, (scores.get(id) ?? 0) + score);
    }
  }
  return [...scores]
    .map(([id, score]) => ({ id, score, matched: hits.get(id)! / wanted.length }))
    .sort((a, c) => c.score - a.score || (a.id < c.id ? -1 : 1));
}
