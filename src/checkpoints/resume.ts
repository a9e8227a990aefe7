import type { Checkpoint } from "../model/checkpoint.ts";
import { cutText, estimateTokens } from "../text/estimate-tokens.ts";

/** How much of a checkpoint a session reads: the summary, the context too, or everything. */
export type ResumeLevel = "summary" | "context" | "full";

export interface Resumed {
  readonly level: ResumeLevel;
  readonly checkpoint: Pick<
    Checkpoint,
    "id" | "projectPath" | "summary" | "tags" | "anchors" | "supersededBy" | "freshness" | "createdAt" | "updatedAt"
  > & {
    readonly context?: Checkpoint["context"] | undefined;
    readonly description?: string | undefined;
  };
  /** Text for the session to read. */
  readonly text: string;
  /** How to get the rest; absent when nothing is missing. */
  readonly note?: string | undefined;
}

export function resumeAt(checkpoint: Checkpoint, level: ResumeLevel, maxTokens: number): Resumed {
  const { id, projectPath, summary, tags, anchors, supersededBy, freshness, createdAt, updatedAt, context } = checkpoint;
  const withContext = level !== "summary";
  const whole = [
    `# ${summary}`,
    `Checkpoint ${id} of ${createdAt}${updatedAt === createdAt ? "" : `, changed ${updatedAt}`}${tags.length > 0 ? `, tags: ${tags.join(", ")}` : ""}`,
    ...(withContext ? Object.entries(context).map(([key, value]) => `${key}: ${value}`) : []),
  ].join("\n");
  const head = cutText(whole, maxTokens, "cut here");
  const shown = head.cut || level !== "full" ? "" : checkpoint.description;
  const description = cutText(shown, Math.max(0, maxTokens - estimateTokens(whole)), "cut here");
  const higher = HIGHER[level];
  const more = higher && (checkpoint.description !== "" || (level === "summary" && Object.keys(context).length > 0));
  return {
    level,
    checkpoint: {
      ...{ id, projectPath, summary, tags, anchors, supersededBy, freshness, createdAt, updatedAt },
      ...(withContext && !head.cut && { context }),
      ...(level === "full" && !head.cut && { description: description.text }),
    },
    text: description.text ? `${head.text}\n\n${description.text}` : head.text,
    note:
      head.cut || description.cut
        ? `Cut to about ${maxTokens} tokens. Resume with a larger max_tokens for the rest.`
        : more
          ? `More is available with level ${JSON.stringify(higher)}.`
          : undefined,
  };
}

const HIGHER: Record<ResumeLevel, ResumeLevel | undefined> = { summary: "context", context: "full", full: undefined };
