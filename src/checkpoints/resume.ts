import type { Checkpoint } from "../model/checkpoint.ts";
import { cutText } from "../text/budget.ts";

/** How much of a checkpoint a session takes up: the headline, the facts too, or everything. */
export type ResumeLevel = "summary" | "context" | "full";

export interface Resumed {
  readonly level: ResumeLevel;
  readonly checkpoint: Pick<Checkpoint, "id" | "projectPath" | "summary" | "tags" | "createdAt" | "updatedAt"> & {
    readonly context?: Checkpoint["context"] | undefined;
    readonly description?: string | undefined;
  };
  /** What the session should read. */
  readonly text: string;
  /** How to get what is not in it; absent when nothing is missing. */
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
      ? `The text was cut to about ${maxTokens} tokens. Resume again with a larger max_tokens for the rest.`
      : more
        ? `There is more: resume with level ${JSON.stringify(higher)}.`
        : undefined,
  };
}

const HIGHER: Record<ResumeLevel, ResumeLevel | undefined> = { summary: "context", context: "full", full: undefined };
