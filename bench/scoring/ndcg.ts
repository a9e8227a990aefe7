/** Computes nDCG@10, 0…1: the gains in ranked order relative to the best possible order. */
export function ndcg10(gains: readonly number[], relevant: readonly number[]): number {
  const gain = (values: readonly number[]) =>
    values.slice(0, 10).reduce((sum, value, rank) => sum + (2 ** value - 1) / Math.log2(rank + 2), 0);
  const best = gain([...relevant].sort((a, b) => b - a));
  return best > 0 ? gain(gains) / best : 0;
}
