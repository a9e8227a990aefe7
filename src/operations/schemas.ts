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

/** The token budget of an answer. A longer answer is truncated, and its note names the call that returns the rest. */
export const MaxTokens = z
  .int()
  .min(LIMITS.answerTokensMin)
  .max(LIMITS.answerTokensMax)
  .default(LIMITS.answerTokens)
  .describe("Token budget.");

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
