import type { Checkpoint } from "../model/checkpoint.ts";
import { CairnError } from "../model/errors.ts";
import type { CheckpointQuery, CheckpointStore } from "../ports/checkpoint-store.ts";

export interface PruneRules {
  /** Deletes only checkpoints created before this time. */
  readonly createdBefore?: string | undefined;
  /** Newest checkpoints to keep in any case. */
  readonly keepLast?: number | undefined;
  /** Only reports what would be deleted. */
  readonly dryRun?: boolean | undefined;
}

export interface Pruned {
  /** Checkpoints that were deleted, or would be. */
  readonly matched: number;
  readonly deleted: number;
  readonly dryRun: boolean;
  /** The newest of them, so that a person can check the rules. */
  readonly examples: readonly Pick<Checkpoint, "id" | "summary" | "createdAt">[];
}

/** Checkpoints per transaction, few enough that other writers do not wait long. */
const BATCH = 200;
const EXAMPLES = 5;

/** Raises `invalid_input` unless at least one rule is given. */
export function assertPruneRule({ createdBefore, keepLast }: PruneRules): void {
  if (createdBefore === undefined && keepLast === undefined)
    throw new CairnError("invalid_input", "Nothing was deleted: set older_than, keep_last or both.");
}

/** Erases the checkpoints that match both rules, in batches: a retention rule is no accident that needs an undo. A crash between two batches leaves the rest to the next run. */
export async function prune(
  store: CheckpointStore,
  { createdBefore, keepLast, dryRun = false }: PruneRules,
  { signal, progress }: { readonly signal?: AbortSignal | undefined; readonly progress?: ((done: number) => void) | undefined } = {},
): Promise<Pruned> {
  const none: Pruned = { matched: 0, deleted: 0, dryRun, examples: [] };
  let after: ListPosition | undefined;
  if (keepLast !== undefined && keepLast > 0) {
    after = await findLastKept(store, keepLast, signal);
    if (!after) return none; // the project has no more than these
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
    // Deleted records are gone from the next page, so the position advances only in a dry run.
    if (dryRun) after = { at: last.createdOrder, id: last.id };
    else deleted += await store.purge(checkpoints.map(({ id }) => id));
    progress?.(matched);
  }
  return { matched, deleted, dryRun, examples: examples.map(({ id, summary, createdAt }) => ({ id, summary, createdAt })) };
}

type ListPosition = NonNullable<CheckpointQuery["after"]>;

/** Finds the last of the newest `count` records. Damaged records do not count, so that they displace no readable one. */
async function findLastKept(store: CheckpointStore, count: number, signal: AbortSignal | undefined): Promise<ListPosition | undefined> {
  let after: ListPosition | undefined;
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
