import { type IdempotencyKey, keysExpiredBefore } from "../../model/idempotency.ts";

/** The keys of calls that may be repeated, with the record that the first call stored or reported on. */
export class MemoryKeys {
  readonly #used = new Map<string, { readonly recordId: string; readonly at: string }>();

  recordOf({ key, at }: IdempotencyKey): string | undefined {
    const used = this.#used.get(key);
    return used && used.at >= keysExpiredBefore(at) ? used.recordId : undefined;
  }

  /** Returns false if an earlier call used the key. */
  claim(once: IdempotencyKey, recordId: string): boolean {
    for (const [key, { at }] of this.#used) if (at < keysExpiredBefore(once.at)) this.#used.delete(key);
    if (this.#used.has(once.key)) return false;
    this.#used.set(once.key, { recordId, at: once.at });
    return true;
  }
}
