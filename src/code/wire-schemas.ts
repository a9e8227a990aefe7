import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { text } from "../operations/schemas.ts";
import { MatchField, WeightsField } from "../operations/search-schemas.ts";
import { LANGUAGES, languageNamed } from "./chunking/language.ts";

/** Wire schemas that the code operations share. */

/** Path relative to the project, with `/`. The operations validate it further. */
export const FilePath = text(LIMITS.projectPathChars, 1);

export const JobOutput = z.object({
  job_id: z.string(),
  project_path: z.string(),
  kind: z.enum(["files", "manifest"]),
  status: z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]),
  accepted_at: z.iso.datetime(),
  started_at: z.iso.datetime().optional(),
  finished_at: z.iso.datetime().optional(),
  reason: z.string().optional().describe("Why it failed."),
  result: z
    .object({
      files: z.array(
        z.object({
          path: z.string(),
          status: z.enum(["indexed", "unchanged", "renamed", "partial", "failed"]),
          chunks: z.int().optional(),
          reason: z.string().optional(),
          redacted: z.array(z.object({ kind: z.string(), count: z.int() })).optional(),
        }),
      ),
      embedded_texts: z.int(),
      not_embedded: z.string().optional().describe("Why some chunks are found by keyword only, for now."),
      removed: z.int(),
      removed_paths: z.array(z.string()).describe("The first ones."),
      renamed: z.int(),
    })
    .optional(),
});

/** A job that indexes a folder. It runs where the files are. */
export const JobView = z.object({
  job_id: z.string(),
  status: z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]),
  phase: z.string(),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
  files_processed: z.int(),
  files_total: z.int(),
  current_file: z.string().optional(),
  eta_seconds: z.int().optional(),
  counts: z.record(z.string(), z.int()),
  skipped: z.record(z.string(), z.int()).describe("By reason."),
  skipped_files: z
    .array(z.object({ path: z.string(), reason: z.string(), detail: z.string().optional() }))
    .describe("The first of each reason."),
  failed_files: z.array(z.object({ path: z.string(), reason: z.string() })),
  error: z.string().optional(),
});

export const Glob = text(LIMITS.globChars, 1);

/** Filter of files and chunks. */
export const FilterFields = {
  glob: Glob.optional().describe("Such as src/**/*.ts, or !test/** to exclude."),
  languages: z.array(text(LIMITS.labelChars, 1)).max(LIMITS.tags).optional().describe("Such as typescript."),
  kinds: z.array(z.string().max(LIMITS.labelChars)).max(LIMITS.tags).optional().describe("function, class, method, type …"),
  changed_since: z.iso.datetime({ offset: true }).optional().describe("ISO 8601."),
};

/** Reads the name of a language. An unknown name would find nothing, so it is refused. */
export function readLanguage(name: string): string {
  const language = languageNamed(name);
  if (language === undefined)
    throw new CairnError("invalid_input", `languages: ${JSON.stringify(name)} is not one of ${[...LANGUAGES].sort().join(", ")}`);
  return language;
}

export const MaxTokens = z
  .int()
  .min(LIMITS.answerTokensMin)
  .max(LIMITS.answerTokensMax)
  .default(LIMITS.codeAnswerTokens)
  .describe("Token budget.");

export const SearchOutput = z.object({
  results: z.array(
    z.object({
      path: z.string(),
      start_line: z.int(),
      end_line: z.int(),
      text: z.string(),
      text_start_line: z.int(),
      language: z.string(),
      kind: z.string(),
      symbol: z.string().optional(),
      parents: z.array(z.string()),
      score: z.number(),
      found: z
        .object({ definition: z.boolean().optional(), keyword: z.int().optional(), semantic: z.int().optional() })
        .describe("Rank in each ranking."),
      stale: z.boolean().optional(),
      content_hash: z.string(),
      indexed_at: z.string(),
    }),
  ),
  match: MatchField,
  weights: WeightsField,
  note: z.string().optional(),
  degraded: z.array(z.string()),
  model: z.string().optional(),
});

export const ContextOutput = z.object({
  contexts: z.array(
    z.object({
      path: z.string(),
      start_line: z.int(),
      end_line: z.int(),
      text: z.string(),
      language: z.string(),
      stale: z.boolean().optional(),
      content_hash: z.string(),
      indexed_at: z.string(),
    }),
  ),
  note: z.string().optional(),
});

const Site = {
  path: z.string(),
  line: z.int(),
  column: z.int(),
  text: z.string(),
  stale: z.boolean().optional(),
  content_hash: z.string(),
};

export const UsagesOutput = z.object({
  definitions: z.array(z.object({ ...Site, kind: z.string(), parents: z.array(z.string()) })),
  references: z.array(z.object(Site)),
  total_references: z.int(),
  note: z.string().optional(),
});
