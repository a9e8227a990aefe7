import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { decodeState, encodeText } from "../text/plain-data.ts";
import { redactMessage } from "../text/redact-message.ts";
import { isBlank, unstorable } from "../text/untrusted.ts";
import type { Draft } from "./draft.ts";

/** The state of a component during an effect. The writes of an effect and its message are committed atomically. */
export interface EffectState {
  get<Value = unknown>(key: string): Promise<Value | undefined>;
  set(key: string, value: unknown): void;
  delete(key: string): void;
}

/** A message as an effect receives it. */
export interface Delivery<Data = unknown> {
  readonly component: string;
  readonly port: string;
  readonly id: string;
  readonly offset: number;
  readonly data: Data;
  /** From 1. */
  readonly attempt: number;
}

/**
 * Applies a message to its component. It runs again after a concurrent commit, so it should only read and write the state: other side
 * effects are not undone.
 */
export type Effect<Data = unknown> = (state: EffectState, message: Delivery<Data>) => void | Promise<void>;

/** Runs the effect on the draft. If it fails, returns the reason and discards its writes. */
export async function tryEffect(draft: Draft, effect: Effect, message: Delivery, timeoutMs: number): Promise<string | undefined> {
  const written = new Map<string, Uint8Array | null>();
  let ended = false;
  let broken: { readonly error: unknown } | undefined;
  const assertOpen = () => {
    if (ended) throw new CairnError("conflict", "The effect has ended: its state can no longer be used. Await everything inside it.");
  };
  const write = (key: string, value: Uint8Array | null) => {
    assertOpen();
    assertStateKey(key);
    written.set(key, value);
    if (written.size > LIMITS.systemEffectWrites)
      throw new CairnError("too_large", `One effect may write at most ${LIMITS.systemEffectWrites} keys.`);
  };
  const read = (key: string) =>
    draft.value(key).catch((error) => {
      broken = { error };
      throw error;
    });
  const state: EffectState = {
    async get<Value>(key: string) {
      assertOpen();
      assertStateKey(key);
      const own = written.get(key);
      const bytes = own === undefined ? await read(key) : own;
      return bytes === null ? undefined : (decodeState(bytes) as Value);
    },
    set: (key, value) =>
      write(
        key,
        encodeValue(draft.redact(value), LIMITS.systemStateValueBytes, `The value of ${JSON.stringify(String(key).slice(0, 100))}`),
      ),
    delete: (key) => write(key, null),
  };
  try {
    await withinTime(effect(state, message), timeoutMs);
    draft.write(written);
    return undefined;
  } catch (error) {
    // The store failed, not the message: this does not count as an attempt.
    if (broken) throw broken.error;
    return reasonOf(error);
  } finally {
    ended = true;
  }
}

async function withinTime(work: void | Promise<void>, timeoutMs: number): Promise<void> {
  if (!(work instanceof Promise)) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new CairnError("timeout", `The effect took longer than ${timeoutMs / 1_000} s.`));
    timer = setTimeout(fail, timeoutMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns why an effect failed, as text that every store accepts. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const clean = redactMessage(text); // error messages may quote secrets
  return clean.replaceAll("\0", "\uFFFD").slice(0, LIMITS.systemReasonChars).toWellFormed() || "failed without a message";
}

/** Encodes plain data as bytes. */
export function encodeValue(value: unknown, maxBytes: number, what: string): Uint8Array {
  const bytes = Buffer.from(encodeText(value), "utf8");
  if (bytes.byteLength > maxBytes)
    throw new CairnError(
      "too_large",
      `${what} has ${bytes.byteLength} bytes; at most ${maxBytes} can be stored. Store it in a file and put the path here.`,
    );
  return bytes;
}

export function assertStateKey(key: unknown): void {
  assertText("key", key, LIMITS.systemStateKeyChars);
}

export function assertText(field: string, value: unknown, maxChars: number): asserts value is string {
  const problem =
    typeof value !== "string"
      ? "must be text"
      : value === ""
        ? "must not be empty"
        : isBlank(value)
          ? "must not be blank: it has no visible character"
          : value.length > maxChars
            ? `must have at most ${maxChars} characters`
            : unstorable(value);
  if (problem) throw new CairnError("invalid_input", `${field}: ${problem}.`);
}
