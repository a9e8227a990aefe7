import type { Checkpoint } from "../model/checkpoint.ts";
import { cutText } from "../text/budget.ts";

/** How much of a checkpoint a session reads: the summary, the context too, or everything. */
export type ResumeLevel = "summary" | "context" | "full";

export interface Resumed {
  readonly level: ResumeLevel;
  readonly checkpoint: Pick<Checkpoint, "id" | "projectPath" | "summary" | "tags" | "createdAt" | "updatedAt"> & {
    readonly context?: Checkpoint["context"] | undefined;
    readonly description?: string | undefined;
  };
  /** Text for the session to read. */
  readonly text: string;
  /** How to get the rest; absent when nothing is missing. */
  readonly note?: string | undefined;
}

export function resumeAt(checkpoint: Checkpoint, level: ResumeLevel, maxTokens: number): Resumed {
  const { id, projectPath, summary, tags, createdAt, updatedAt, context, description } = checkpoint;
  const withContext = level !== "summary";
  const whole = [
    `# ${summary}`,
    `Checkpoint ${id} of ${createdAt}${updatedAt === createdAt ? "" : `, changed ${updatedAt}`}${tags.length > 0 ? `, tags: ${tags.join(", ")}` : ""}`,
    ...(withContext ? Object.entries(context).map(([key, value]) => `${key}: ${value}`) : []),
    ...(level === "full" && description ? ["", description] : []),
  ].join("\n");
  const { text, cut } = cutText(whole, maxTokens, "cut here");
  const higher = HIGHER[level];
  const more = higher && (description !== "" || (level === "summary" && Object.keys(context).length > 0));
  return {
    level,
    checkpoint: {
      ...{ id, projectPath, summary, tags, createdAt, updatedAt },
      ...(withContext && !cut && { context }),
      ...(level === "full" && !cut && { description }),
    },
    text,
    note: cut
      ? `Cut to about ${maxTokens} tokens. Resume with a larger max_tokens for the rest.`
      : more
        ? `More is available with level ${JSON.stringify(higher)}.`
        : undefined,
  };
}

const HIGHER: Record<ResumeLevel, ResumeLevel | undefined> = { summary: "context", context: "full", full: undefined };
