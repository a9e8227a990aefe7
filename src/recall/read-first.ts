import { CairnError } from "../model/errors.ts";
import type { IdempotencyKey } from "../model/idempotency.ts";
import type { RecordStore } from "../ports/recall-store.ts";

/**
 * Returns the record that the first call with this key saved, as it is now, or `undefined` if there was none. Raises `conflict` if the
 * record was deleted since: a repeated call must neither bring it back nor save another.
 */
export async function readFirst<RecordType extends { readonly id: string }, Filter>(
  store: RecordStore<RecordType, Filter>,
  once: IdempotencyKey,
): Promise<(RecordType & { readonly embedded: boolean }) | undefined> {
  const id = await store.recordOfKey(once);
  if (id === undefined) return undefined;
  const [record] = (await store.getMany([id])).records;
  if (!record)
    throw new CairnError("conflict", `${id} was saved with this idempotency_key and has been deleted since. Use a new key to save again.`);
  return { ...record, embedded: await hasVector(store, id) };
}

async function hasVector<RecordType, Filter>(store: RecordStore<RecordType, Filter>, id: string): Promise<boolean> {
  const current = (await store.embeddings.versions()).find(({ isCurrent }) => isCurrent);
  if (!current) return true;
  const probe = new Float32Array(current.dimension).fill(1 / Math.sqrt(current.dimension));
  return (await store.similarities(current.versionId, probe, [id])).has(id);
}
