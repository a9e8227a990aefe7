import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { MessageHead } from "../model/system.ts";
import type { Draft, PortDraft } from "./draft.ts";
import { type Effect, encodeValue, tryEffect } from "./effect.ts";

/**
 * `done`: the message's effect has happened, in this very step. `stored`: it is kept for later, since no effect was given. `failed`:
 * its effect failed and it is kept to be tried again. `dead`: it has failed too often. `duplicate`: it came before, nothing happened.
 */
export type Outcome = "done" | "stored" | "failed" | "dead" | "duplicate";

/** What became of a message. Whatever it says is durable. */
export interface Receipt {
  readonly outcome: Outcome;
  /** How often its effect was tried and failed. */
  readonly attempts: number;
  /** Why the last try failed. */
  readonly reason?: string | undefined;
}

/** Something to be done to a component. It changes the draft, or raises and leaves the draft as it was. */
export interface ComponentWrite<Result> {
  /** The message it is about: looked up before it runs. */
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

/** Takes a message once: the claim, the offset and the effect become true together. */
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
        // Forgotten, or the second offset of a message that was forgotten.
        if (offset <= port.row.prunedTo || !draft.messageAt(name, offset)) return { outcome: "duplicate", attempts: 0 };
        throw anotherMessage(delivery, draft.messageAt(name, offset)!);
      }
      if (found && (found.status !== "pending" || !effect)) {
        port.mark(offset); // sent again under another offset: nothing is missing there
        return receipt(found.status === "dead" ? "dead" : "duplicate", found);
      }
      if (!found && !effect) assertRoom(port);
      const timestamp = Date.parse(delivery.now()) / 1_000;
      const before: MessageHead = found ?? { port: name, id, offset, timestamp, status: "pending", attempts: 0, reason: null };
      // The effect runs first: if the store fails under it, the draft is as it was.
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
    `Offset ${offset} of the port "${port}" was received before as the message "${there.id}", so "${id}" cannot have it. The source counts wrong: give every message an offset of its own.`,
    { details: { kind: "offset", offset } },
  );
}

/** What a port remembers of the offsets beyond a missing one is bounded. */
function assertInRange({ row, ahead }: PortDraft, offset: number): void {
  const { port: name, firstOffset, position } = row;
  if (offset < firstOffset)
    throw new CairnError("invalid_input", `offset: the port "${name}" begins at ${firstOffset}.`, { details: { kind: "offset" } });
  const next = position + 1;
  if (offset > next && ahead.size >= LIMITS.systemOffsetsAhead && !ahead.has(offset))
    throw new CairnError(
      "unavailable",
      `${ahead.size} messages of the port "${name}" were received beyond offset ${next}, which is missing. Send that one again first.`,
      { details: { kind: "gap", missing: next }, retryAfterMs: 1_000 },
    );
}

/** Messages that nobody has worked off are bounded too. */
function assertRoom({ row, pending }: PortDraft): void {
  if (pending >= LIMITS.systemPendingMessages)
    throw new CairnError("unavailable", `${pending} messages of the port "${row.port}" wait for their effect. Work them off first.`, {
      details: { kind: "pending" },
      retryAfterMs: 1_000,
    });
}
