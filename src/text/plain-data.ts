import { CairnError } from "../model/errors.ts";
import type { StoredState } from "../model/run.ts";

/**
 * Encodes states as text and decodes them: JSON, plus tags for dates, big integers, bytes, maps, sets, `undefined` in lists, and numbers
 * such as NaN. Functions, class instances and prototype keys are rejected in both directions, so a decoded state is only data.
 */
export function encodeText(value: unknown): string {
  return isJson(value, "state", 0) ? JSON.stringify(value) : TAGGED + JSON.stringify(tag(value));
}

/** Decodes a state from the text or the UTF-8 bytes that a store returns. */
export function decodeState(state: StoredState): unknown {
  if (typeof state === "string") return decodeText(state);
  return decodeText(Buffer.from(state.buffer, state.byteOffset, state.byteLength).toString("utf8"));
}

export function decodeText(text: string): unknown {
  const tagged = text.startsWith(TAGGED);
  let value: unknown;
  try {
    value = JSON.parse(tagged ? text.slice(TAGGED.length) : text);
  } catch (cause) {
    throw new CairnError("unavailable", "A stored state is damaged. Resume from an earlier run checkpoint.", {
      cause,
      details: { kind: "damaged" },
    });
  }
  // A search of the text is much cheaper than a walk, and the key hardly ever occurs.
  if (text.includes("__proto__")) isJson(value, "state", 0);
  return tagged ? untag(value) : value;
}

/** Prefix of an encoded state with tags; no JSON text starts with it. */
const TAGGED = "#1";
/** Limit of nesting: deeper values are cycles, or would overflow the stack. */
const DEPTH_MAX = 500;

/** Returns whether plain JSON represents the value. Raises for a value that must not be stored. */
function isJson(value: unknown, path: string, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "bigint":
      return false;
    case "undefined":
      return false;
    case "object":
      break;
    default:
      throw unstorableValue(path, `a ${typeof value}`);
  }
  if (value === null) return true;
  if (depth > DEPTH_MAX) throw unstorableValue(path, "nested too deeply, or contains itself");
  if (Array.isArray(value)) {
    let plain = true;
    for (let i = 0; i < value.length; i++) if (!isJson(value[i], path, depth + 1)) plain = false;
    return plain;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    let plain = true;
    for (const key of Object.keys(value)) {
      if (key === "__proto__") throw unstorableValue(path, 'an object with the key "__proto__"');
      const item = (value as Record<string, unknown>)[key];
      // As in JSON, an undefined property equals an absent one.
      if (item !== undefined && !isJson(item, key, depth + 1)) plain = false;
      if (key === "$") plain = false;
    }
    return plain;
  }
  if (value instanceof Map) {
    for (const [key, item] of value) {
      isJson(key, path, depth + 1);
      isJson(item, path, depth + 1);
    }
    return false;
  }
  if (value instanceof Set) {
    for (const item of value) isJson(item, path, depth + 1);
    return false;
  }
  if (value instanceof Date || value instanceof Uint8Array) return false;
  throw unstorableValue(path, `an instance of ${prototype.constructor?.name || "a class"}`);
}

/** Every tagged value is `{"$": [kind, …]}`; an object that has a key `$` of its own is written as a list of pairs. */
function tag(value: unknown): unknown {
  switch (typeof value) {
    case "bigint":
      return { $: ["n", value.toString()] };
    case "undefined":
      return { $: ["u"] };
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { $: ["f", Object.is(value, -0) ? "-0" : String(value)] };
    case "object":
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (Array.isArray(value)) return Array.from(value, tag);
  if (value instanceof Date) return { $: ["d", value.getTime()] };
  if (value instanceof Uint8Array) return { $: ["b", Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")] };
  if (value instanceof Map) return { $: ["m", Array.from(value, ([key, item]) => [tag(key), tag(item)])] };
  if (value instanceof Set) return { $: ["s", Array.from(value, tag)] };
  const pairs = Object.entries(value).filter(([, item]) => item !== undefined);
  const tagged = pairs.map(([key, item]) => [key, tag(item)] as const);
  return pairs.some(([key]) => key === "$") ? { $: ["o", tagged] } : Object.fromEntries(tagged);
}

function untag(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(untag);
  const { $ } = value as { $?: [string, never] };
  if ($ === undefined) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, untag(item)]));
  const [kind, content] = $;
  switch (kind) {
    case "n":
      return BigInt(content);
    case "u":
      return undefined;
    case "f":
      return Number(content);
    case "d":
      return new Date(content ?? Number.NaN);
    case "b":
      return new Uint8Array(Buffer.from(content, "base64"));
    case "m":
      return new Map((content as [unknown, unknown][]).map(([key, item]) => [untag(key), untag(item)]));
    case "s":
      return new Set((content as unknown[]).map(untag));
    case "o":
      return Object.fromEntries((content as [string, unknown][]).map(([key, item]) => [key, untag(item)]));
    default:
      throw new CairnError("unavailable", "A stored state was written by a newer version of Cairn. Upgrade to read it.");
  }
}

function unstorableValue(path: string, what: string): CairnError {
  return new CairnError(
    "invalid_input",
    `The state cannot be stored: ${JSON.stringify(path)} is ${what}. A state holds plain data only: objects, lists, text, numbers, dates, maps, sets and bytes.`,
    { details: { kind: "state", path } },
  );
}
