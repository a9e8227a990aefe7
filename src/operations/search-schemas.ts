import { z } from "zod";

/** How well the best results of a search answer the query. */
export const MatchField = z.enum(["high", "medium", "low", "none"]).describe("How well the best results answer; none: probably unrelated.");

/** Asks a search to explain its weights. */
export const Explain = z.boolean().default(false).describe("Return how both rankings were weighted.");

/** The weights of a hybrid search and the measurements that led to them. */
export const WeightsField = z
  .object({
    semantic: z.number().describe("Weight of the semantic ranking; the keyword ranking has the rest."),
    coverage: z.number().describe("Share of the query that the model can read."),
    code_share: z.number().optional().describe("Share of code punctuation in the best records."),
    keyword_lead: z.number().describe("How far the best keyword match stands out."),
    matched: z.number().describe("Share of the query's terms that the best keyword match has."),
    neighbours: z.number().optional().describe("Part of a neighbour's score that a record got."),
    recent: z.boolean().optional().describe("Newer records were preferred."),
  })
  .optional()
  .describe("With explain: how both rankings were weighted.");

/** Returns the line that explains the weights in text output. */
export function weightsNote(weights: z.output<typeof WeightsField>): string[] {
  if (!weights) return [];
  const { semantic, ...signals } = weights;
  const rounded = (value: unknown) => (typeof value === "number" ? Number(value.toFixed(2)) : value);
  const listed = Object.entries(signals).flatMap(([name, value]) => (value === undefined ? [] : `${name} ${rounded(value)}`));
  return [`Weights: semantic ${semantic.toFixed(2)}, keyword ${(1 - semantic).toFixed(2)} (${listed.join(", ")}).`];
}
