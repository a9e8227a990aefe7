import { LIMITS } from "../model/limits.ts";
import type { MessageHead, PortPosition } from "../model/system.ts";
import { newPort } from "../model/system-rules.ts";
import type { MessageQuery, SystemStore } from "../ports/system-store.ts";
import { decodeState } from "../text/plain-data.ts";
import { assertText, type Effect, encodeValue } from "./effect.ts";
import { assertRetention, type Retention, type Settings, whole } from "./options.ts";
import type { ComponentWriter } from "./writer.ts";
import { deliver, movePruneMark, type Receipt, requeue } from "./writes.ts";

/** A message as a source sends it. */
export interface Message<Data = unknown> {
  /** A repeated message must have the same id. */
  readonly id: string;
  /** The position in the source: consecutive integers, one per message. */
  readonly offset: number;
  /** Plain data: objects, lists, text, numbers, dates, maps, sets and bytes. */
  readonly data?: Data | undefined;
}

/** A message that waits for its effect. */
export interface PendingMessage<Data = unknown> extends Omit<MessageHead, "port" | "status"> {
  readonly data: Data;
}

/** Counts the messages that `work` processed. */
export interface WorkReport {
  readonly done: number;
  readonly failed: number;
  readonly dead: number;
}

/** Receives the messages of one source. */
export interface Port<Data = unknown> {
  readonly name: string;
  /**
   * Receives a message exactly once. With an effect, the message and all writes of the effect are committed atomically; without one,
   * the message is stored until `work`. Resolves when it is durable; rejects if nothing was stored.
   */
  receive(message: Message<Data>, effect?: Effect<Data>, options?: { readonly signal?: AbortSignal }): Promise<Receipt>;
  /** Tries the effect once on each pending message, by offset. */
  work(effect: Effect<Data>, options?: { readonly limit?: number; readonly signal?: AbortSignal }): Promise<WorkReport>;
  /** Returns whether this message was already received. Deleted messages are recognised by offset only. */
  seen(message: { readonly id: string; readonly offset?: number }): Promise<boolean>;
  /** Returns the progress of the port: its source continues after `position`. */
  position(): Promise<PortPosition>;
  /** Returns pending messages, by offset. */
  pending(options?: PageOptions): Promise<readonly PendingMessage<Data>[]>;
  /** Returns dead letters: messages whose attempts are exhausted. */
  deadLetters(options?: PageOptions): Promise<readonly PendingMessage<Data>[]>;
  /** Requeues dead letters, all or the named ones, and returns their number. */
  requeue(ids?: readonly string[]): Promise<number>;
  /** Deletes finished messages and returns their number; with `dryRun`, only counts them. */
  prune(retention: Retention, options?: PruneOptions): Promise<number>;
}

export interface PruneOptions {
  readonly signal?: AbortSignal | undefined;
  /** Only counts what would be deleted. */
  readonly dryRun?: boolean | undefined;
}

/** Selects a page of messages. */
export interface PageOptions {
  readonly limit?: number;
  /** The offset of the last message of the page before. */
  readonly after?: number;
}

const PAGE = 100;
const SWEPT_AT_ONCE = 1_000;

export interface PortDeps {
  readonly component: string;
  readonly port: string;
  readonly firstOffset: number;
  readonly store: () => Promise<SystemStore>;
  readonly writer: ComponentWriter;
  readonly settings: Settings;
}

export function port<Data>({ component, port: name, firstOffset, store, writer, settings }: PortDeps): Port<Data> {
  const { maxAttempts, effectTimeoutMs: timeoutMs, now } = settings;
  const delivery = { component, port: name, firstOffset, maxAttempts, timeoutMs, now };

  async function page(status: "pending" | "dead", { limit = PAGE, after }: PageOptions = {}) {
    whole("limit", limit, 1, LIMITS.systemBatchMessages);
    const from = after === undefined ? undefined : { component, port: name, offset: after };
    return (await store()).messages({ component, port: name, status, after: from, limit });
  }
  const toDeadLetter = ({ id, offset, timestamp, attempts, reason, data }: Awaited<ReturnType<typeof page>>[number]) => {
    const value = data === null ? undefined : decodeState(data);
    return { id, offset, timestamp, attempts, reason, data: value as Data };
  };

  return {
    name,

    async receive({ id, offset, data }, effect, { signal } = {}) {
      assertText("id", id, LIMITS.systemMessageIdChars);
      whole("offset", offset, 0, Number.MAX_SAFE_INTEGER - 1);
      const stored = data === undefined ? null : encodeValue(data, LIMITS.systemMessageBytes, "The message");
      return writer.submit(deliver({ ...delivery, id, offset, value: data, data: stored, effect: effect as Effect | undefined }), signal);
    },

    async work(effect, { limit = Number.POSITIVE_INFINITY, signal } = {}) {
      const count = { done: 0, failed: 0, dead: 0, stored: 0, duplicate: 0 };
      let after: number | undefined;
      for (let left = limit; left > 0; ) {
        const waiting = await page("pending", { limit: Math.min(PAGE, left), ...(after === undefined ? {} : { after }) });
        const receipts = waiting.map(({ id, offset, data }) => {
          const value = data === null ? undefined : decodeState(data);
          return writer.submit(deliver({ ...delivery, id, offset, value, data, effect: effect as Effect }), signal);
        });
        for (const { outcome } of await Promise.all(receipts)) count[outcome]++;
        if (waiting.length < PAGE) break;
        after = waiting.at(-1)!.offset;
        left -= waiting.length;
      }
      return { done: count.done, failed: count.failed, dead: count.dead };
    },

    async seen({ id, offset }) {
      assertText("id", id, LIMITS.systemMessageIdChars);
      const { ports, messages } = await (await store()).load(component, [{ port: name, id }]);
      const prunedTo = ports?.find((candidate) => candidate.port === name)?.prunedTo ?? -1;
      return messages[0] !== undefined || (offset !== undefined && offset <= prunedTo);
    },

    async position() {
      const { ports = [] } = await (await store()).load(component, []);
      const found = ports.find((candidate) => candidate.port === name);
      if (!found) return newPort(name, firstOffset);
      const { ahead: _, pending: __, ...row } = found;
      return row;
    },

    pending: async (options) => (await page("pending", options)).map(toDeadLetter),

    deadLetters: async (options) => (await page("dead", options)).map(toDeadLetter),

    async requeue(ids) {
      const wanted = ids ?? (await deadIds(await store(), component, name));
      let requeued = 0;
      for (let start = 0; start < wanted.length; start += PAGE) {
        const some = wanted.slice(start, start + PAGE).map((id) => writer.submit(requeue({ port: name, id })));
        requeued += (await Promise.all(some)).filter(Boolean).length;
      }
      return requeued;
    },

    async prune(retention, { signal, dryRun = false } = {}) {
      assertRetention(retention);
      const { keepLast, olderThanMs } = retention;
      const opened = await store();
      const since = olderThanMs === undefined ? undefined : (Date.parse(now()) - olderThanMs) / 1_000;
      const firstYoung = since === undefined ? undefined : await opened.firstSince(component, name, since);
      const mark = (position: number) => Math.min(position - (keepLast ?? 0), firstYoung === undefined ? position : firstYoung - 1);
      if (dryRun) return countDone(opened, component, name, mark, signal);
      // Commits the mark first: messages below it are recognised by offset, so that their rows can be deleted in batches.
      const upTo = await writer.submit(movePruneMark(name, firstOffset, mark), signal);
      let forgotten = 0;
      for (let swept = SWEPT_AT_ONCE; swept === SWEPT_AT_ONCE; forgotten += swept) {
        signal?.throwIfAborted();
        swept = await opened.sweep(component, name, { upTo, limit: SWEPT_AT_ONCE });
      }
      return forgotten;
    },
  };
}

async function deadIds(store: SystemStore, component: string, name: string): Promise<string[]> {
  const ids: string[] = [];
  for (let after: number | undefined; ; ) {
    const from = after === undefined ? undefined : { component, port: name, offset: after };
    const found = await store.messages({ component, port: name, status: "dead", after: from, limit: PAGE });
    ids.push(...found.map(({ id }) => id));
    if (found.length < PAGE) return ids;
    after = found.at(-1)!.offset;
  }
}

/** Counts the finished messages of a port up to the mark. */
async function countDone(
  store: SystemStore,
  component: string,
  port: string,
  mark: (position: number) => number,
  signal: AbortSignal | undefined,
): Promise<number> {
  const ports = (await store.overview()).find((one) => one.component === component)?.ports ?? [];
  const position = ports.find((one) => one.port === port)?.position;
  if (position === undefined) return 0;
  const upTo = mark(position);
  let count = 0;
  let after: MessageQuery["after"];
  for (;;) {
    signal?.throwIfAborted();
    const page = await store.messages({ status: "done", component, port, after, limit: SWEPT_AT_ONCE });
    const last = page.at(-1);
    count += page.filter(({ offset }) => offset <= upTo).length;
    if (!last || page.length < SWEPT_AT_ONCE || last.offset > upTo) return count;
    after = { component, port, offset: last.offset };
  }
}
