import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { MessageHead } from "../model/system.ts";
import type { Draft, PortDraft } from "./draft.ts";
import { type Effect, encodeValue, tryEffect } from "./effect.ts";

/**
 * `done`: the effect was applied and committed with the message. `stored`: the message waits, because there was no effect. `failed`:
 * the effect failed and will be retried. `dead`: the attempts are exhausted. `duplicate`: the message was already received; no change.
 */
export type Outcome = "done" | "stored" | "failed" | "dead" | "duplicate";

/** The durable result of a message. */
export interface Receipt {
  readonly outcome: Outcome;
  /** The number of failed attempts of its effect. */
  readonly attempts: number;
  /** Why the last attempt failed. */
  readonly reason?: string | undefined;
}

/** A write to a component. It changes the draft, or throws and leaves the draft unchanged. */
export interface ComponentWrite<Result> {
  /** The message of the write, loaded before `apply`. */
  readonly message?: { readonly port: string; readonly id: string; readonly offset?: number } | undefined;
  readonly bytes: number;
  apply(draft: Draft): Promise<Result>;
}

export interface DeliveryWrite {
  readonly component: string;
  readonly port: string;
  readonly firstOffset: number;
  readonly id: string;
  readonly offset: number;
  readonly value: unknown;
  readonly data: Uint8Array | null;
  readonly effect: Effect | undefined;
  readonly maxAttempts: number;
  readonly timeoutMs: number;
  readonly now: () => string;
}

/** Delivers a message exactly once: message, offset and effect are committed atomically. */
export function deliver(delivery: DeliveryWrite): ComponentWrite<Receipt> {
  const { component, port: name, id, offset, effect } = delivery;
  return {
    message: { port: name, id, offset },
    bytes: delivery.data?.byteLength ?? 0,
    async apply(draft) {
      const port = draft.port(name, delivery.firstOffset);
      assertInRange(port, offset);
      if (!draft.hasRoomFor(name, LIMITS.systemPorts))
        throw new CairnError("too_large", `A component has at most ${LIMITS.systemPorts} ports. Use another component.`);
      const found = draft.message(name, id);
      if (!found && port.has(offset)) {
        // The message was deleted by retention, or is the second offset of one that was.
        if (offset <= port.row.prunedTo || !draft.messageAt(name, offset)) return { outcome: "duplicate", attempts: 0 };
        throw anotherMessage(delivery, draft.messageAt(name, offset)!);
      }
      if (found && (found.status !== "pending" || !effect)) {
        port.mark(offset); // sent again with another offset: not a gap
        return receipt(found.status === "dead" ? "dead" : "duplicate", found);
      }
      if (!found && !effect) assertRoom(port);
      const timestamp = Date.parse(delivery.now()) / 1_000;
      const before: MessageHead = found ?? { port: name, id, offset, timestamp, status: "pending", attempts: 0, reason: null };
      // The effect runs first, so that a failure of the store leaves the draft unchanged.
      const attempt = before.attempts + 1;
      // An effect sees the message as it is stored, so a repeated attempt works with the same data as the first.
      const value = draft.redact(delivery.value);
      const data = draft.redacts && delivery.data ? encodeValue(value, LIMITS.systemMessageBytes, "The message") : delivery.data;
      const reason =
        effect && (await tryEffect(draft, effect, { component, port: name, id, offset, data: value, attempt }, delivery.timeoutMs));
      port.mark(offset);
      if (!effect) {
        draft.put({ ...before, data });
        return receipt("stored", before);
      }
      if (reason === undefined) {
        draft.put({ ...before, status: "done", reason: null, data });
        return receipt("done", { ...before, reason: null });
      }
      const dead = attempt >= delivery.maxAttempts;
      const failed: MessageHead = { ...before, status: dead ? "dead" : "pending", attempts: attempt, reason };
      draft.put({ ...failed, data });
      return receipt(dead ? "dead" : "failed", failed);
    },
  };
}

/** Resets the attempts of a dead letter. Returns whether there was one. */
export function requeue({ port, id }: { readonly port: string; readonly id: string }): ComponentWrite<boolean> {
  return {
    message: { port, id },
    bytes: 0,
    async apply(draft) {
      const found = draft.message(port, id);
      if (found?.status !== "dead") return false;
      draft.put({ ...found, status: "pending", attempts: 0, data: null });
      return true;
    },
  };
}

/** Raises the mark below which finished messages may be deleted, up to the position at most. Returns the requested mark. */
export function movePruneMark(port: string, firstOffset: number, to: (position: number) => number): ComponentWrite<number> {
  return {
    bytes: 0,
    async apply(draft) {
      const target = draft.port(port, firstOffset);
      const mark = to(target.row.position);
      target.prune(mark);
      return mark;
    },
  };
}

function receipt(outcome: Outcome, { attempts, reason }: Pick<MessageHead, "attempts" | "reason">): Receipt {
  return { outcome, attempts, ...(reason === null ? {} : { reason }) };
}

function anotherMessage({ port, id, offset }: DeliveryWrite, there: MessageHead): CairnError {
  return new CairnError(
    "conflict",
    `Offset ${offset} of the port "${port}" was received before as the message "${there.id}", so "${id}" cannot have it. The source reused an offset: give every message its own offset.`,
    { details: { kind: "offset", offset } },
  );
}

/** Limits the number of out-of-order offsets of a port. */
function assertInRange({ row, ahead }: PortDraft, offset: number): void {
  const { port: name, firstOffset, position } = row;
  if (offset < firstOffset)
    throw new CairnError("invalid_input", `offset: the port "${name}" starts at ${firstOffset}.`, { details: { kind: "offset" } });
  const next = position + 1;
  if (offset > next && ahead.size >= LIMITS.systemOffsetsAhead && !ahead.has(offset))
    throw new CairnError(
      "unavailable",
      `${ahead.size} messages of the port "${name}" were received beyond offset ${next}, which is missing. Send that message first.`,
      { details: { kind: "gap", missing: next }, retryAfterMs: 1_000 },
    );
}

/** Limits the number of pending messages of a port. */
function assertRoom({ row, pending }: PortDraft): void {
  if (pending >= LIMITS.systemPendingMessages)
    throw new CairnError(
      "unavailable",
      `${pending} messages of the port "${row.port}" wait for their effect. Process them first with work().`,
      {
        details: { kind: "pending" },
        retryAfterMs: 1_000,
      },
    );
}
