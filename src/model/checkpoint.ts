import type { Anchored } from "./anchor.ts";
import { LIMITS } from "./limits.ts";

/** An agent's saved context. */
export interface Checkpoint extends Anchored {
  readonly id: string;
  readonly projectPath: string;
  readonly summary: string;
  readonly description: string;
  readonly context: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  readonly tokenCount: number;
  /** ISO 8601 in UTC with milliseconds, like every time in Cairn. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The sort and filter keys of lists: the times above, unless those were in the future. */
  readonly createdOrder: string;
  readonly updatedOrder: string;
  /** Starts at 1 and increments with each edit. */
  readonly revision: number;
}

/** The time that orders a list of checkpoints. */
export type CheckpointSort = "created_at" | "updated_at";

/** The free texts of a checkpoint with their limits in characters. Secrets are removed from them. */
export const CHECKPOINT_TEXTS = {
  summary: LIMITS.summaryChars,
  description: LIMITS.descriptionChars,
  context: { key: LIMITS.contextKeyChars, value: LIMITS.contextValueChars },
  tags: LIMITS.tagChars,
} as const;
