import { languageMarker, MARKED_LANGUAGES, queryTerms, recordTerms } from "./terms.ts";

/** Ranks texts in memory by Okapi BM25: the keyword ranking of the in-memory stores and the baseline of the benchmark. */
export function bm25(
  documents: ReadonlyMap<string, string>,
  query: string,
  { k1 = 1.2, b = 0.75 } = {},
): { id: string; score: number; matched: number }[] {
  const counted = [...documents].map(([id, text]) => {
    const counts = new Map<string, number>();
    const terms = recordTerms(text);
    for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
    return { id, counts, length: terms.length };
  });
  const meanLength = counted.reduce((sum, { length }) => sum + length, 0) / Math.max(1, counted.length);
  const indexed = MARKED_LANGUAGES.filter((language) => counted.some(({ counts }) => counts.has(languageMarker(language))));
  const words = queryTerms(query, indexed);
  const scores = new Map<string, number>();
  const matched = new Map<string, Set<number>>();
  for (const [word, terms] of words.entries())
    for (const term of terms) {
      const having = counted.filter(({ counts }) => counts.has(term));
      // As in SQLite's FTS5: a term in more than half of the texts counts next to nothing, but never less.
      const idf = Math.max(1e-6, Math.log((counted.length - having.length + 0.5) / (having.length + 0.5)));
      for (const { id, counts, length } of having) {
        const frequency = counts.get(term)!;
        const score = (idf * frequency * (k1 + 1)) / (frequency + k1 * (1 - b + (b * length) / meanLength));
        scores.set(id, (scores.get(id) ?? 0) + score);
        matched.set(id, (matched.get(id) ?? new Set()).add(word));
      }
    }
  return [...scores]
    .map(([id, score]) => ({ id, score, matched: matched.get(id)!.size / words.length }))
    .sort((a, c) => c.score - a.score || (a.id < c.id ? -1 : 1));
}
