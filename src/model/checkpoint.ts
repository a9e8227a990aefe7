/** Where an agent was: what a later session needs to pick the work up again. */
export interface Checkpoint {
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
  /** The times that lists are ordered and filtered by: those above, unless they lay in the future. */
  readonly createdOrder: string;
  readonly updatedOrder: string;
  /** 1 when new; grows by one with each edit. */
  readonly revision: number;
}

/** The time that orders a list of checkpoints. */
export type CheckpointSort = "created_at" | "updated_at";
