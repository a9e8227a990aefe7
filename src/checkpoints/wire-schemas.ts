import { z } from "zod";
import { Tags } from "../operations/schemas.ts";

/** Wire schemas that the checkpoint operations share. */

export const CheckpointOutput = z.object({
  id: z.string(),
  project_path: z.string(),
  summary: z.string(),
  description: z.string(),
  context: z.record(z.string(), z.string()),
  tags: z.array(z.string()),
  token_count: z.int(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});

export const FilterFields = {
  tags: Tags.optional().describe("Match all of these tags."),
  tag_match: z.enum(["exact", "substring"]).default("exact"),
  created_from: z.iso.datetime({ offset: true }).optional(),
  created_before: z.iso.datetime({ offset: true }).optional(),
};

const FoundRank = z.object({ rank: z.int(), score: z.number() });

export const SearchResult = z.object({
  checkpoint: CheckpointOutput,
  score: z.number().describe("Cosine similarity, 0 to 1."),
  distance: z.number(),
  found: z
    .object({ semantic: FoundRank.optional(), keyword: FoundRank.optional() })
    .describe("Rank and score in each ranking that found it."),
});
