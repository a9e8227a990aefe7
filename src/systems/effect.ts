import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { isBlank, unstorable } from "../text/clean.ts";
import { decodeState, encodeText } from "../text/plain-data.ts";
import { redactMessage } from "../text/redact-message.ts";
import type { Draft } from "./draft.ts";

/** What a component remembers, while an effect works on it. All that an effect writes commits together with its message, or not at all. */
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
  /** 1 the first time. */
  readonly attempt: number;
}

/**
 * What a message does to its component. It may run again when another process was quicker, so it does nothing but read and write
 * the state: what it does elsewhere is not undone.
 */
export type Effect<Data = unknown> = (state: EffectState, message: Delivery<Data>) => void | Promise<void>;

/** Runs the effect on the draft. Gives the reason when it failed, and then nothing of it is left. */
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
    // The store is to blame, not the message: it must not cost an attempt.
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

/** Why an effect failed, as text that every store can hold. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const clean = redactMessage(text); // errors quote what they were given, secrets included
  return clean.replaceAll("\0", "\uFFFD").slice(0, LIMITS.systemReasonChars).toWellFormed() || "failed without a message";
}

/** Plain data as bytes. */
export function encodeValue(value: unknown, maxBytes: number, what: string): Uint8Array {
  const bytes = Buffer.from(encodeText(value), "utf8");
  if (bytes.byteLength > maxBytes)
    throw new CairnError(
      "too_large",
      `${what} has ${bytes.byteLength} bytes; at most ${maxBytes} can be stored. Keep it in a file and store where it is.`,
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
