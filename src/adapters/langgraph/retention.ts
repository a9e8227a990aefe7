import { assertPruneRule } from "../../model/run-rules.ts";
import type { CheckpointOutline, ThreadStore } from "./thread-store.ts";

/** Selects the LangGraph checkpoints that `prune` deletes. */
export interface PruneThreads {
  /** Deletes only checkpoints stored before this time. Threads without later checkpoints are deleted entirely. */
  readonly olderThan?: string | Date | undefined;
  /** Keeps the newest N checkpoints of each thread and namespace. */
  readonly keepLast?: number | undefined;
  readonly threadId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Counts what `prune` deleted. */
export interface PrunedThreads {
  readonly checkpoints: number;
  readonly threads: number;
  readonly bytes: number;
}

const PAGE = 500;
const BATCH = 200;

/** Deletes old checkpoints in batches. The newest checkpoint of a thread stays, with the ancestors that its delta channels need. */
export async function pruneThreads(store: ThreadStore, { threadId, signal, ...rules }: PruneThreads): Promise<PrunedThreads> {
  const olderThan = rules.olderThan instanceof Date ? rules.olderThan.toISOString() : rules.olderThan;
  const rule = { olderThan, keepLast: rules.keepLast };
  assertPruneRule(rule);
  const report = { checkpoints: 0, threads: 0, bytes: 0 };
  for await (const thread of threadId === undefined ? allThreads(store) : [threadId]) {
    const namespaces = await store.outlines(thread);
    const all = [...namespaces.values()].flat();
    const whole = olderThan !== undefined && !rule.keepLast && all.every(({ createdAt }) => createdAt < olderThan);
    for (const [namespace, outlines] of namespaces) {
      const { gone, hidden } = whole
        ? { gone: outlines.map(({ checkpointId }) => checkpointId), hidden: [] }
        : selectExpired(outlines, rule);
      for (let start = 0; start < gone.length; start += BATCH) {
        signal?.throwIfAborted();
        const batch = gone.slice(start, start + BATCH);
        report.bytes += await store.remove(thread, namespace, batch, start === 0 ? hidden : []);
        report.checkpoints += batch.length;
      }
    }
    if (whole && all.length > 0) {
      // Deletes writes of checkpoints that were never stored.
      await store.deleteThread(thread);
      report.threads++;
    }
  }
  return report;
}

/** Selects expired checkpoints: `gone` can be deleted, `hidden` must stay because a retained checkpoint depends on them. */
function selectExpired(
  newestFirst: readonly CheckpointOutline[],
  { olderThan, keepLast }: { readonly olderThan?: string | undefined; readonly keepLast?: number | undefined },
): { gone: string[]; hidden: string[] } {
  const byId = new Map(newestFirst.map((outline) => [outline.checkpointId, outline]));
  const retained = new Set<string>();
  const needed = new Set<string>();
  for (const [rank, outline] of newestFirst.entries()) {
    const old = olderThan === undefined || outline.createdAt < olderThan;
    const beyond = keepLast === undefined || rank >= keepLast;
    if (rank > 0 && old && beyond) continue;
    retained.add(outline.checkpointId);
    for (const home of Object.values(outline.homes)) needed.add(home);
    // Before format 4, what was sent to a checkpoint's tasks stands in its parent's writes.
    if (outline.parentId) needed.add(outline.parentId);
    const open = new Set(outline.deltas);
    for (let up = byId.get(outline.parentId ?? ""); up && open.size > 0; up = byId.get(up.parentId ?? "")) {
      needed.add(up.checkpointId);
      for (const channel of up.channels) {
        if (open.delete(channel) && up.homes[channel]) needed.add(up.homes[channel]);
      }
    }
  }
  const rest = newestFirst.map(({ checkpointId }) => checkpointId).filter((id) => !retained.has(id));
  return { gone: rest.filter((id) => !needed.has(id)), hidden: rest.filter((id) => needed.has(id)) };
}

async function* allThreads(store: ThreadStore): AsyncGenerator<string> {
  for (let after = ""; ; ) {
    const page = await store.threads(after, PAGE);
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1)!;
  }
}
