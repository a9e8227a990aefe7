import { relative } from "node:path";
import type { SaveCheckpoint } from "../../checkpoints/service.ts";
import { LIMITS } from "../../model/limits.ts";
import { clip, clipLine } from "../../text/clip.ts";
import type { Redact } from "../../text/redact.ts";
import type { SessionFacts } from "./transcript.ts";

export interface SessionMoment {
  readonly event: "pre-compact" | "post-compact" | "session-end";
  readonly sessionId?: string | undefined;
  /** `auto`, `manual`, `clear`, `logout` … */
  readonly why?: string | undefined;
  /** The client's own summary of the session, after a compaction. */
  readonly compactSummary?: string | undefined;
}

/** Makes a checkpoint without secrets from the transcript of a session. Returns `undefined` if the session has no request. */
export function sessionCheckpoint(
  { projectPath, tree }: { readonly projectPath: string; readonly tree: string },
  { requests, answer, files, branch }: SessionFacts,
  { event, sessionId, why, compactSummary }: SessionMoment,
  redact: Redact,
): SaveCheckpoint | undefined {
  const last = requests.at(-1) ?? compactSummary;
  if (last === undefined) return undefined;
  const lead = LEADS[event];
  const shown = files.map((file) => relative(tree, file)).map((path, index) => (path.startsWith("..") ? files[index]! : path));
  const parts = [
    ...(compactSummary ? [`Summary of the session:\n${clip(redact, compactSummary, 7_000)}`] : []),
    `Last requests:\n${requests.map((request) => `- ${clipLine(redact, request, 800)}`).join("\n")}`,
    ...(shown.length > 0 ? [`Files written:\n${shown.map((path) => `- ${clipLine(redact, path, 150)}`).join("\n")}`] : []),
    ...(answer ? [`Last answer:\n${clip(redact, answer, 2_500)}`] : []),
  ];
  const facts = { session_id: sessionId, branch, why, files_written: files.length > 0 ? String(files.length) : undefined };
  return {
    projectPath,
    summary: clipLine(redact, `${lead}: ${last}`, LIMITS.summaryChars),
    description: clip(redact, parts.join("\n\n"), LIMITS.descriptionChars),
    context: Object.fromEntries(
      Object.entries(facts).flatMap(([key, value]) => (value ? [[key, clip(redact, value, LIMITS.contextValueChars)]] : [])),
    ),
    tags: ["auto", event],
  };
}

const LEADS = { "pre-compact": "Before compaction", "post-compact": "After compaction", "session-end": "End of session" };
