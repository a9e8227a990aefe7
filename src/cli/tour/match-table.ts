/** Lists hits with the quality of each match in words, the best first. */
export function matchTable(hits: readonly { readonly score: number; readonly text: string }[]): string {
  const rows = hits.map(({ score, text }) => ({ word: matchWord(score), text }));
  const width = Math.max(0, ...rows.map(({ word }) => word.length));
  return rows.map(({ word, text }, index) => `${index + 1}. ${word.padEnd(width)}  ${text}`).join("\n");
}

/** Names a similarity. The boundaries lie between those of related and unrelated texts with the bundled models. */
export function matchWord(score: number): string {
  if (score >= 0.3) return "good match";
  return score >= 0.2 ? "weak match" : "no match";
}
