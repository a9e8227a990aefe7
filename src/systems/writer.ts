import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { MessageHead } from "../model/system.ts";
import type { SystemStore } from "../ports/system-store.ts";
import { waitLimitMs } from "../scheduling/calls.ts";
import { poll, pollDelayMs } from "../scheduling/retry.ts";
import { Draft, type View, viewOf } from "./draft.ts";
import type { ComponentWrite } from "./writes.ts";

/** The only writer of a component in this process. Queued writes share one commit. */
export interface ComponentWriter {
  /** Resolves when the write is durable. Refuses writes when the queue is full. */
  submit<Result>(write: ComponentWrite<Result>, signal?: AbortSignal): Promise<Result>;
  /** Resolves when all submitted writes are done; later writes wait for `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** The number of commits of this writer. */
  readonly commits: number;
  /** Closes the writer after all submitted writes. */
  close(): Promise<void>;
}

export interface WriterOptions {
  readonly store: () => Promise<SystemStore>;
  readonly component: string;
  readonly commitsPerSecond: number;
  readonly now: () => string;
  /** A monotonic clock in milliseconds and its sleep function; tests inject their own. */
  readonly ticks?: (() => number) | undefined;
  readonly wait?: ((ms: number) => Promise<unknown>) | undefined;
}

interface Waiting {
  readonly write: ComponentWrite<unknown>;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Milliseconds of back-off after a conflict with another process. Longer than RETRY_MS, so that both processes make progress. */
const REST_MS = 15;
const RETRY_MS = 3;

export function componentWriter(options: WriterOptions): ComponentWriter {
  const { store: open, component, commitsPerSecond, now, ticks = () => performance.now(), wait = sleep } = options;
  const queue: Waiting[] = [];
  const held: Waiting[] = []; // submitted during a pause
  let queuedBytes = 0;
  let pauses = 0;
  let closed = false;
  let working: Promise<void> | undefined;
  let nextCommitAt = 0;
  let commits = 0;
  let view: View | undefined;

  function work(): Promise<void> {
    working ??= drainQueue().finally(() => {
      working = undefined;
      if (queue.length > 0) void work(); // submitted after the last check
    });
    return working;
  }

  async function drainQueue(): Promise<void> {
    while (queue.length > 0) {
      // Writes accumulate until the budget allows the next commit; the turn admits replies to the last results.
      const waitMs = nextCommitAt - ticks();
      if (waitMs > 0) await wait(waitMs);
      else await turn();
      await commitTogether(take());
    }
  }

  function take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { write } of queue) {
      if (count === LIMITS.systemBatchMessages || (count > 0 && bytes + write.bytes > LIMITS.systemBatchBytes)) break;
      bytes += write.bytes;
      count++;
    }
    queuedBytes -= bytes;
    return queue.splice(0, count);
  }

  async function commitTogether(batch: readonly Waiting[]): Promise<void> {
    for (const { signal, reject } of batch) if (signal?.aborted) reject(signal.reason);
    const waiting = batch.filter(({ signal }) => !signal?.aborted);
    if (waiting.length === 0) return;
    try {
      let attempts = 0;
      const answers = await poll(
        () => {
          attempts++;
          return attemptCommit(waiting);
        },
        { everyMs: RETRY_MS, limitMs: waitLimitMs() },
      );
      if (!answers)
        throw new CairnError("unavailable", `Other processes keep changing the component "${component}". Nothing was stored; try again.`, {
          retryAfterMs: 1_000,
        });
      nextCommitAt = Math.max(nextCommitAt, attempts > 1 ? ticks() + pollDelayMs(REST_MS) : 0);
      for (const answer of answers) answer();
    } catch (error) {
      view = undefined;
      for (const { reject } of waiting) reject(error);
    }
  }

  /** Returns the answers once they are durable, or nothing when another process committed first. */
  async function attemptCommit(waiting: readonly Waiting[]): Promise<(() => void)[] | undefined> {
    const store = await open();
    const begun = await begin(store, waiting);
    if (!begun) return undefined;
    const draft = begun;
    const answers: (() => void)[] = [];
    for (const { write, resolve, reject } of waiting)
      try {
        const result = await write.apply(draft);
        answers.push(() => resolve(result));
      } catch (error) {
        answers.push(() => reject(error));
      }
    if (draft.changed) {
      const startedAt = ticks();
      if (!(await store.commit(draft.change(now())))) {
        view = undefined;
        return undefined;
      }
      commits++;
      nextCommitAt = startedAt + 1_000 / commitsPerSecond;
    }
    view = draft.accepted();
    return answers;
  }

  async function begin(store: SystemStore, waiting: readonly Waiting[]): Promise<Draft | undefined> {
    const wanted = waiting.flatMap(({ write: { message } }) => message ?? []);
    const byId = wanted.map(({ port, id }) => ({ port, id }));
    const loaded = await store.load(component, byId, view?.version);
    if (loaded.ports) view = viewOf(loaded.version, loaded.ports);
    const current = view!;
    // A new message at a received offset: load the message that has this offset.
    const strange = wanted.flatMap(({ port: name, offset }, i) => {
      const port = current.ports.get(name);
      if (loaded.messages[i] || offset === undefined || !port || offset <= port.row.prunedTo) return [];
      return offset <= port.row.position || port.ahead.has(offset) ? [{ port: name, offset }] : [];
    });
    const owners = strange.length === 0 ? undefined : await store.load(component, strange, current.version);
    if (owners && owners.version !== current.version) {
      view = undefined;
      return undefined;
    }
    const heads = [...loaded.messages, ...(owners?.messages ?? [])].filter((head): head is MessageHead => head !== undefined);
    return new Draft(store, component, current, heads);
  }

  return {
    submit<Result>(write: ComponentWrite<Result>, signal?: AbortSignal) {
      return new Promise<Result>((resolve, reject) => {
        signal?.throwIfAborted();
        if (closed) throw new CairnError("unavailable", "The system was closed. Open it again.");
        const count = queue.length + held.length;
        if (count >= LIMITS.systemQueueMessages || (count > 0 && queuedBytes + write.bytes > LIMITS.systemQueueBytes))
          throw new CairnError(
            "rate_limited",
            `${count} messages of the component "${component}" are already queued. Wait for their receipts, then send more.`,
            { details: { kind: "queue" }, retryAfterMs: 100 },
          );
        queuedBytes += write.bytes;
        (pauses > 0 ? held : queue).push({ write, signal, resolve: resolve as (result: unknown) => void, reject });
        if (pauses === 0) void work();
      });
    },

    async pause() {
      pauses++;
      while (working) await working;
    },

    resume() {
      if (--pauses > 0) return;
      queue.push(...held.splice(0));
      if (queue.length > 0) void work();
    },

    get commits() {
      return commits;
    },

    async close() {
      closed = true;
      while (working) await working;
    },
  };
}
