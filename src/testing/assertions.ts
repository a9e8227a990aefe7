import assert from "node:assert/strict";
import { CairnError, type ErrorCode } from "../model/errors.ts";

/** Asserts that the work raises a `CairnError` with this code and, if given, this `kind` among its details. */
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
