import assert from "node:assert/strict";
import { CairnError, type ErrorCode } from "../model/errors.ts";

/** Asserts that the work raises a CairnError with this code, and with this `details.kind` where one is given. */
export async function raises(code: ErrorCode, work: () => Promise<unknown>, kind?: string): Promise<void> {
  await assert.rejects(
    async () => work(),
    (error) => {
      assert.ok(error instanceof CairnError, `expected a CairnError, got ${error}`);
      assert.equal(error.code, code);
      if (kind) assert.equal(error.details?.kind, kind);
      return true;
    },
  );
}

export function bytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text));
}

/** Compares by value. A driver may return a Buffer, which is bytes of another class. */
export function same(actual: unknown, expected: unknown): void {
  assert.deepEqual(plain(actual), expected);
}

export function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}
