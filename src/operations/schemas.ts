import { posix, win32 } from "node:path";
import { z } from "zod";
import { DAMAGED_SHOWN } from "../model/damaged-record.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { isBlank, unstorable } from "../text/untrusted.ts";

/** A string that every store can hold, with a length limit. One that must not be empty must also show something: a blank name or summary identifies nothing. */
export function text(max: number, min = 0): z.ZodString {
  // One `check` for all: each call copies the schema, and `min(1).max(9)` would build it three times.
  return z
    .string()
    .check(
      z.minLength(min, min === 1 ? "must not be empty" : `must have at least ${min} characters`),
      z.maxLength(max, `must have at most ${max} characters`),
      (context) => {
        const blank = min > 0 && context.value.length >= min && isBlank(context.value);
        const problem = blank ? "must not be blank: it has no visible character" : unstorable(context.value);
        if (problem) context.issues.push({ code: "custom", message: problem, input: context.value });
      },
    );
}

export const ProjectPath = text(LIMITS.projectPathChars, 1)
  .check((context) => {
    const path = context.value;
    const flavour = /^[A-Za-z]:[\\/]/.test(path) ? win32 : posix;
    const cleaned = flavour.normalize(path).replace(/(?<=.)[\\/]$/, "");
    if (!flavour.isAbsolute(path)) context.issues.push({ code: "custom", message: "must be an absolute path", input: path });
    else if (cleaned !== path && !/^[A-Za-z]:\\$/.test(path))
      context.issues.push({
        code: "custom",
        message: `must be in its cleaned form: ${JSON.stringify(cleaned.slice(0, 200))}`,
        input: path,
      });
  })
  .describe("Absolute path of the project; each project has a database of its own.");

/** A project by its absolute path, or by a name: programs that send content need not have a folder for it. */
export const ProjectId = text(LIMITS.projectPathChars, 1)
  .check((context) => {
    const id = context.value;
    const refuse = (message: string) => context.issues.push({ code: "custom", message, input: id });
    if (id === SHARED_PROJECT_ID) refuse('"shared" is not a project; it holds knowledge only');
    else if (/[\\/]/.test(id)) for (const { message } of ProjectPath.safeParse(id).error?.issues ?? []) refuse(message);
    else if (!/^[A-Za-z0-9][\w.-]{0,199}$/.test(id)) refuse("must be an absolute path, or a name of letters, digits, dots, - and _");
  })
  .describe("The project: its absolute path, or a name.");

export const Tags = z.array(text(LIMITS.tagChars, 1)).max(LIMITS.tags, `at most ${LIMITS.tags} tags`);

export const Context = z
  .record(text(LIMITS.contextKeyChars, 1), text(LIMITS.contextValueChars))
  .refine((pairs) => Object.keys(pairs).length <= LIMITS.contextPairs, `at most ${LIMITS.contextPairs} pairs`);

export const Id = text(LIMITS.idChars, 1);

export const IdempotencyKey = text(LIMITS.idempotencyKeyChars, 1)
  .optional()
  .describe("Identifies the call: repeated with the same key within 24 hours, it has no further effect.");

/** The age of a retention rule. The service reads it, because a duration depends on the clock. */
export const OlderThan = text(40, 1);
export const OLDER_THAN_FORMS = "30d, 12h, 4w, or a time such as 2026-01-31T00:00:00Z.";

/** The token budget of an answer. A longer answer is truncated, and its note names the call that returns the rest. */
export const MaxTokens = z
  .int()
  .min(LIMITS.answerTokensMin)
  .max(LIMITS.answerTokensMax)
  .default(LIMITS.answerTokens)
  .describe("Token budget.");

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

/** Records that a read skipped because they do not match their checksums. Absent when there are none. */
export const Damaged = z
  .array(z.object({ id: z.string(), reason: z.string(), project_path: z.string().optional(), collection: z.string().optional() }))
  .optional()
  .describe("Damaged records that were skipped; cairn doctor --repair sets them aside.");

/** The field of an answer that reports damaged records, and nothing if there are none. */
export function damagedField<Record extends { readonly id: string; readonly reason: string }>(
  damaged: readonly Record[],
): { damaged?: readonly Record[] } {
  return damaged.length > 0 ? { damaged: damaged.slice(0, DAMAGED_SHOWN) } : {};
}

/** Returns the note about damaged records for text output. */
export function damagedNote(damaged: z.output<typeof Damaged>): string[] {
  if (!damaged) return [];
  const named = damaged.slice(0, 3).map(({ id, reason }) => `${id} (${reason})`);
  const more = damaged.length > named.length ? ` and ${damaged.length - named.length} more` : "";
  return [`Skipped ${damaged.length} damaged: ${named.join(", ")}${more}. Run cairn doctor --repair.`];
}

/** Returns the note about secrets that were removed, for text output. */
export function redactionNote(
  redacted: readonly { readonly kind: string; readonly field: string; readonly count: number }[] = [],
): string[] {
  if (redacted.length === 0) return [];
  return [`Secrets removed before storing: ${redacted.map(({ kind, field, count }) => `${count} × ${kind} in ${field}`).join(", ")}.`];
}

/** Lists deleted records instead of the others. */
export const ListDeleted = z.boolean().default(false).describe("List deleted records that can be restored, without other filters.");

/** The answer to a deletion. */
export const Deletion = z.object({
  id: z.string(),
  deleted: z.boolean(),
  deleted_at: z.iso.datetime(),
  restorable_until: z.iso.datetime().describe("The end of its retention."),
});

/** The fields of a record scope: a project, or shared. */
export const PlaceFields = {
  project_path: ProjectPath.optional(),
  scope: z.enum(["project", "shared"]).optional().describe("shared: for all projects."),
};
