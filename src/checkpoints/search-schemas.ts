import { z } from "zod";
import { CheckpointOutput } from "./wire-schemas.ts";

export const UtcOffset = z.int().min(-840).max(840).default(0).describe("Minutes by which the days of the time zone are ahead of UTC.");

export const DayCounts = z.object({ days: z.array(z.object({ day: z.string().describe("Such as 2026-01-31."), count: z.int() })) });

const FoundRank = z.object({ rank: z.int(), score: z.number() });

export const SearchResult = z.object({
  checkpoint: CheckpointOutput,
  score: z.number().describe("Cosine similarity, 0 to 1."),
  distance: z.number(),
  found: z
    .object({ semantic: FoundRank.optional(), keyword: FoundRank.optional() })
    .describe("Rank and score in each ranking that found it."),
});
