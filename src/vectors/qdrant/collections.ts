import type { VectorSpace } from "../../ports/embedding-store.ts";
import type { QdrantClient } from "./client.ts";
import { failure } from "./request.ts";
import { collectionName } from "./tenant.ts";

/** Fields of the payload with an index: the tenant, and the record ids of filtered searches. */
const INDEXES = [
  { field: "tenant", tenant: true },
  { field: "id", tenant: false },
] as const;

/** The Qdrant collections of embedding models, each created when it is first used. */
export interface Collections {
  /** Returns the name of the model's collection, which then exists with its indexes. Asks Qdrant once per process and collection. */
  ensure(space: VectorSpace, signal?: AbortSignal): Promise<string>;
  /** Makes the next `ensure` look again, because the collection is gone. */
  forget(collection: string): void;
}

export function qdrantCollections(client: QdrantClient): Collections {
  const complete = new Set<string>();
  return {
    async ensure(space, signal) {
      const collection = collectionName(space);
      if (!complete.has(collection)) await completeCollection(client, collection, space.dimension, signal);
      complete.add(collection);
      return collection;
    },
    forget: (collection) => void complete.delete(collection),
  };
}

/**
 * Creates what is missing of a collection and its indexes. A process that was killed in between leaves the rest to the next one. If two
 * processes create it at the same time, the second finds the collection of the first, and an index is created twice without effect.
 */
async function completeCollection(
  client: QdrantClient,
  collection: string,
  dimension: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const state = (await client.describe(collection, signal)) ?? (await create(client, collection, dimension, signal));
  if (state.dimension !== dimension)
    throw failure("tenant", `The Qdrant collection ${collection} was not created for vectors of ${dimension} dimensions. Delete it.`);
  for (const { field, tenant } of INDEXES)
    if (state.indexes.get(field)?.tenant !== tenant) await client.createIndex(collection, field, { tenant }, signal);
}

async function create(client: QdrantClient, collection: string, dimension: number, signal: AbortSignal | undefined) {
  let refused: unknown;
  try {
    await client.createCollection(collection, dimension, signal);
  } catch (error) {
    refused = error; // perhaps because another process was first
  }
  const state = await client.describe(collection, signal);
  if (!state) throw refused ?? failure("tenant", `Qdrant did not create the collection ${collection}.`);
  return state;
}
