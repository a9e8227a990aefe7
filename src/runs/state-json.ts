import type { StoredState } from "../model/run.ts";
import { decodeState } from "../text/plain-data.ts";

/** Bytes up to which a state is decoded to be shown. */
export const STATE_SHOWN_BYTES = 1_000_000;

/** Returns the state as readable JSON; `undefined` for a large state. */
export function stateText(state: StoredState): string | undefined {
  return state.length > STATE_SHOWN_BYTES ? undefined : readableJson(decodeState(state));
}

/** Returns a plain value as JSON, with dates, big integers, maps, sets and bytes in the form that people read. */
export function readableJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => {
    if (typeof part === "bigint") return part.toString();
    if (part instanceof Map) return [...part];
    if (part instanceof Set) return [...part];
    return part instanceof Uint8Array ? Buffer.from(part).toString("base64") : part;
  });
}
