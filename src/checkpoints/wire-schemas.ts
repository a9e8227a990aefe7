import { z } from "zod";
import { AnchoredOutput } from "../freshness/wire-schemas.ts";
import { LIMITS } from "../model/limits.ts";
import { Context, Tags, text } from "../operations/schemas.ts";

/** Wire schemas that the checkpoint operations share. */

export const CheckpointOutput = z.object({
  id: z.string(),
  project_path: z.string(),
  summary: z.string(),
  description: z.string(),
  context: z.record(z.string(), z.string()),
  tags: z.array(z.string()),
  ...AnchoredOutput,
  token_count: z.int(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  deleted_at: z.iso.datetime().optional().describe("Present if it is deleted."),
});

export const FilterFields = {
  tags: Tags.optional().describe("Match all of these tags."),
  tag_match: z.enum(["exact", "substring"]).default("exact"),
  created_from: z.iso.datetime({ offset: true }).optional(),
  created_before: z.iso.datetime({ offset: true }).optional(),
  context: Context.optional().describe("Match all of these pairs, such as branch or session_id."),
};

export const TextFilter = text(LIMITS.queryChars, 1).optional().describe("Match all of these words, in summary, description or tags.");
