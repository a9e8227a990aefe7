import type { Checkpoint } from "../model/checkpoint.ts";
import { CairnError } from "../model/errors.ts";
import type { CheckpointQuery, CheckpointStore } from "../ports/checkpoint-store.ts";

export interface PruneRules {
  /** Only those created before this time. */
  readonly createdBefore?: string | undefined;
  /** Never the newest so many. */
  readonly keepLast?: number | undefined;
  /** Only say what would go. */
  readonly dryRun?: boolean | undefined;
}

export interface Pruned {
  /** How many went, or would go. */
  readonly matched: number;
  readonly deleted: number;
  readonly dryRun: boolean;
  /** The newest of them, to see whether the rules are right. */
  readonly examples: readonly Pick<Checkpoint, "id" | "summary" | "createdAt">[];
}

/** Small enough that other writers get their turn between two batches. */
const BATCH = 200;
const EXAMPLES = 5;

/** Deletes what both rules give free, in batches: a kill in between leaves fewer to delete, never half a record. */
export async function prune(
  store: CheckpointStore,
  { createdBefore, keepLast, dryRun = false }: PruneRules,
  { signal, progress }: { readonly signal?: AbortSignal | undefined; readonly progress?: ((done: number) => void) | undefined } = {},
): Promise<Pruned> {
  if (createdBefore === undefined && keepLast === undefined)
    throw new CairnError("invalid_input", "Say what may go: older_than, keep_last or both. Nothing was deleted.");
  const none: Pruned = { matched: 0, deleted: 0, dryRun, examples: [] };
  let after: ListPlace | undefined;
  if (keepLast !== undefined && keepLast > 0) {
    after = await lastKept(store, keepLast, signal);
    if (!after) return none; // there are no more than are to stay
  }
  let matched = 0;
  let deleted = 0;
  const examples: Checkpoint[] = [];
  for (;;) {
    signal?.throwIfAborted();
    const { checkpoints } = await store.list({ filter: { createdBefore }, limit: BATCH, offset: 0, sortBy: "created_at", after });
    const last = checkpoints.at(-1);
    if (!last) break;
    matched += checkpoints.length;
    if (examples.length < EXAMPLES) examples.push(...checkpoints.slice(0, EXAMPLES - examples.length));
    // What was deleted is gone from the next page; the last one that stays is a place that cannot move past the others.
    if (dryRun) after = { at: last.createdOrder, id: last.id };
    else deleted += await store.deleteMany(checkpoints.map(({ id }) => id));
    progress?.(matched);
  }
  return { matched, deleted, dryRun, examples: examples.map(({ id, summary, createdAt }) => ({ id, summary, createdAt })) };
}

type ListPlace = NonNullable<CheckpointQuery["after"]>;

/** Finds the last of the newest `count` records. Damaged ones do not count: they must not push a sound one out of those that stay. */
async function lastKept(store: CheckpointStore, count: number, signal: AbortSignal | undefined): Promise<ListPlace | undefined> {
  let after: ListPlace | undefined;
  for (let left = count; left > 0; ) {
    signal?.throwIfAborted();
    const { checkpoints } = await store.list({ limit: Math.min(left, BATCH), offset: 0, sortBy: "created_at", after });
    const last = checkpoints.at(-1);
    if (!last) return undefined;
    after = { at: last.createdOrder, id: last.id };
    left -= checkpoints.length;
  }
  return after;
}
