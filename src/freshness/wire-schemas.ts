import { z } from "zod";
import { ANCHOR_KINDS, type Anchor, FRESHNESS_STATES } from "../model/anchor.ts";
import { LIMITS } from "../model/limits.ts";
import { ProjectId, text } from "../operations/schemas.ts";
import type { Redact } from "../text/redact.ts";
import { freshnessText } from "./judge.ts";

/** Wire schemas of anchors and freshness that checkpoints and knowledge share. */

/** The project whose code index records are compared with: a linked working tree has an index of its own. */
export const CodePath = z
  .union([ProjectId, z.literal("")])
  .optional()
  .describe("Working tree whose code index is used. Default: project_path. Empty: none.");

/** An anchor as it is stored. */
export const AnchorOutput = z.object({
  kind: z.enum(ANCHOR_KINDS),
  value: text(LIMITS.anchorChars, 1),
  path: text(LIMITS.anchorChars).optional(),
  hash: text(LIMITS.anchorChars).optional(),
  content: text(LIMITS.anchorChars).optional(),
  lines: z.int().min(0).optional(),
  generation: z.int().min(0).optional(),
  branch: text(LIMITS.anchorChars).optional(),
});

export const Anchors = z.array(AnchorOutput).max(LIMITS.anchors);

export const FreshnessOutput = z
  .object({
    state: z.enum(FRESHNESS_STATES),
    reason: z.string().optional(),
    since: z.string().optional().describe("The commit at which it was saved."),
    checked: z.enum(["index", "working_tree"]).optional().describe("What it was compared with."),
    anchors: z.array(
      z.object({ kind: z.enum(ANCHOR_KINDS), value: z.string(), state: z.enum(FRESHNESS_STATES), to: z.string().optional() }),
    ),
  })
  .describe("Whether the record still matches the code.");

/** A filter of searches. */
export const FreshOnly = z.boolean().default(false).describe("Only records that match the code.");

/** The fields of a stored record. */
export const AnchoredOutput = {
  anchors: Anchors.optional().describe("Code that the record refers to, as it was when the record was saved."),
  superseded_by: z.string().optional().describe("The record that replaces this one."),
  freshness: FreshnessOutput.optional(),
};

/** Removes secrets from the texts of anchors that come from a file. */
export function redactAnchors(anchors: readonly Anchor[], redact: Redact): Anchor[] {
  return anchors.map((anchor) => ({
    ...anchor,
    value: redact(anchor.value).text,
    ...(anchor.path !== undefined && { path: redact(anchor.path).text }),
    ...(anchor.branch !== undefined && { branch: redact(anchor.branch).text }),
  }));
}

type WireAnchored = { [Field in keyof typeof AnchoredOutput]?: z.output<(typeof AnchoredOutput)[Field]> } & { readonly outdated?: number };

/** Whether there was something to compare. A record that names no code has no mark in texts. */
const hasMark = ({ state, reason }: NonNullable<WireAnchored["freshness"]>) => state !== "unknown" || reason !== undefined;

/** The fields of a record for agents: a word with a short reason, and what replaces the record. */
export function freshnessField({ freshness, superseded_by, outdated = 0 }: WireAnchored) {
  return {
    ...(freshness && hasMark(freshness) && { freshness: freshnessText(freshness) }),
    ...(superseded_by && { superseded_by }),
    ...(outdated > 0 && { outdated }),
  };
}

/** The same as a note in a text. */
export function freshnessNote({ freshness, superseded_by, outdated = 0 }: WireAnchored): string[] {
  const parts = [
    ...(freshness && hasMark(freshness) ? [freshnessText(freshness)] : []),
    ...(superseded_by ? [`superseded by ${superseded_by}`] : []),
    ...(outdated > 0 ? [`reported as outdated ${outdated === 1 ? "once" : `${outdated} times`}`] : []),
  ];
  return parts.length > 0 ? [`(${parts.join("; ")})`] : [];
}
