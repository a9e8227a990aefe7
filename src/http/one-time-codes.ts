import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** How long the link of `cairn ui` works: long enough for a browser to start. */
export const CODE_MS = 60_000;
/** Codes that are valid at once. The oldest gives up its place, so that no caller can fill the memory. */
const MAX_CODES = 16;

export interface OneTimeCodes {
  /** Returns a new code. */
  create(): string;
  /** Whether the code is valid. A code is valid once and for `CODE_MS`. */
  redeem(code: string): boolean;
}

/** Keeps the codes that `cairn ui` puts into a link. Only their hashes stay in memory. */
export function oneTimeCodes(nowMs: () => number = () => performance.now()): OneTimeCodes {
  let codes: { readonly hash: Buffer; readonly untilMs: number }[] = [];
  return {
    create() {
      const code = randomBytes(32).toString("base64url");
      codes = [...codes, { hash: hashOf(code), untilMs: nowMs() + CODE_MS }].slice(-MAX_CODES);
      return code;
    },
    redeem(code) {
      const hash = hashOf(code);
      const now = nowMs();
      let isValid = false;
      // Every code is compared, in constant time, so that the time of an answer says nothing about them.
      codes = codes.filter(({ hash: expected, untilMs }) => {
        const isSame = timingSafeEqual(hash, expected);
        if (isSame && now < untilMs) isValid = true;
        return !isSame && now < untilMs;
      });
      return isValid;
    },
  };
}

function hashOf(code: string): Buffer {
  return createHash("sha256").update(code).digest();
}
