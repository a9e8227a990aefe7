import { z } from "zod";
import { failure, type QdrantOptions, qdrantRequest, statusOf } from "./request.ts";
import { keyOf, markerId, pointId } from "./tenant.ts";

export interface QdrantPoint {
  /** The key of the vector in its database. */
  readonly key: number;
  readonly vector: Float32Array;
  /** The id of the record. */
  readonly id: string;
}

/** The points of one tenant in one Qdrant collection. */
export interface TenantPoints {
  readonly collection: string;
  readonly tenant: string;
}

export interface CollectionState {
  readonly dimension: number | undefined;
  /** The indexed payload fields, and whether the index groups points by tenant. */
  readonly indexes: ReadonlyMap<string, { readonly tenant: boolean }>;
}

/** The part of the REST API of Qdrant that Cairn uses (1.11 and newer). Each verb on points names a tenant and reaches no other. */
export interface QdrantClient {
  /** Returns the names of all collections on the server. */
  collections(signal?: AbortSignal): Promise<readonly string[]>;
  /** Returns `undefined` for a collection that does not exist. */
  describe(collection: string, signal?: AbortSignal): Promise<CollectionState | undefined>;
  createCollection(collection: string, dimension: number, signal?: AbortSignal): Promise<void>;
  /** Creates an index of a payload field with keywords. Repetition is harmless. */
  createIndex(collection: string, field: string, options: { readonly tenant: boolean }, signal?: AbortSignal): Promise<void>;
  deleteCollection(collection: string, signal?: AbortSignal): Promise<void>;
  /** Resolves when the points are searchable. */
  upsert(at: TenantPoints, points: readonly QdrantPoint[], signal?: AbortSignal): Promise<void>;
  remove(at: TenantPoints, keys: readonly number[], signal?: AbortSignal): Promise<void>;
  /** Deletes all points of a tenant, with its marker. */
  removeTenant(at: TenantPoints, signal?: AbortSignal): Promise<void>;
  count(at: TenantPoints, signal?: AbortSignal): Promise<number>;
  /** Returns keys in order, from `from` on, and the start of the next page. */
  scroll(
    at: TenantPoints,
    from: number | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<{ keys: number[]; next: number | undefined }>;
  /** Returns the record ids of the nearest points, best first, among the given records or all. */
  query(
    at: TenantPoints,
    vector: Float32Array,
    limit: number,
    among: readonly string[] | undefined,
    signal?: AbortSignal,
  ): Promise<string[]>;
  /** Returns whether the tenant was marked as copied. The mark disappears with the collection. */
  isMarked(at: TenantPoints, signal?: AbortSignal): Promise<boolean>;
  mark(at: TenantPoints, dimension: number, signal?: AbortSignal): Promise<void>;
}

const Accepted = z.object({ result: z.literal(true) });
const Updated = z.object({ result: z.object({ status: z.string() }) });
const Collections = z.object({ result: z.object({ collections: z.array(z.object({ name: z.string() })) }) });
const Collection = z.object({
  result: z.object({
    config: z.object({ params: z.object({ vectors: z.unknown() }) }),
    payload_schema: z.record(
      z.string(),
      z.object({ data_type: z.string(), params: z.object({ is_tenant: z.boolean().nullish() }).nullish() }),
    ),
  }),
});
const Count = z.object({ result: z.object({ count: z.int() }) });
const Scroll = z.object({
  result: z.object({ points: z.array(z.object({ id: z.string() })), next_page_offset: z.string().nullish() }),
});
const Query = z.object({ result: z.object({ points: z.array(z.object({ payload: z.object({ id: z.string() }) })) }) });

/** Links per point within a tenant. `m` is 0: no search spans tenants, so a graph of the whole collection would have no use. */
const TENANT_GRAPH = { m: 0, payload_m: 16 };

export function qdrantClient(options: QdrantOptions): QdrantClient {
  const request = qdrantRequest(options);
  const at = (collection: string) => `/collections/${encodeURIComponent(collection)}`;

  /** Waits until an update is applied. Qdrant may also answer that it only recorded the update, which is not done. */
  async function update(method: "PUT" | "POST", path: string, body: unknown, signal: AbortSignal | undefined): Promise<void> {
    const { result } = await request(Updated, method, `${path}?wait=true`, body, signal);
    if (result.status !== "completed") throw failure("tenant", `Qdrant has not applied an update yet: status ${result.status}.`);
  }

  const upsert = (collection: string, points: readonly object[], signal: AbortSignal | undefined) =>
    update("PUT", `${at(collection)}/points`, { points }, signal);
  const removeWhere = (collection: string, filter: object, signal: AbortSignal | undefined) =>
    update("POST", `${at(collection)}/points/delete`, { filter }, signal);
  const scroll = async (collection: string, body: object, signal: AbortSignal | undefined) =>
    (await request(Scroll, "POST", `${at(collection)}/points/scroll`, { ...body, with_payload: false, with_vector: false }, signal)).result;

  return {
    async collections(signal) {
      const { result } = await request(Collections, "GET", "/collections", undefined, signal);
      return result.collections.map(({ name }) => name);
    },
    async describe(collection, signal) {
      const found = await request(Collection, "GET", at(collection), undefined, signal).catch((error: unknown) => {
        if (statusOf(error) === 404) return undefined;
        throw error;
      });
      if (!found) return undefined;
      const { result } = found;
      const vectors = z.object({ size: z.int(), distance: z.literal("Cosine") }).safeParse(result.config.params.vectors);
      const keywords = Object.entries(result.payload_schema).filter(([, { data_type }]) => data_type === "keyword");
      return {
        dimension: vectors.data?.size,
        indexes: new Map(keywords.map(([field, { params }]) => [field, { tenant: params?.is_tenant === true }])),
      };
    },
    async createCollection(collection, dimension, signal) {
      await request(
        Accepted,
        "PUT",
        at(collection),
        { vectors: { size: dimension, distance: "Cosine" }, hnsw_config: TENANT_GRAPH },
        signal,
      );
    },
    async createIndex(collection, field, { tenant }, signal) {
      const schema = { type: "keyword", ...(tenant ? { is_tenant: true } : {}) };
      await update("PUT", `${at(collection)}/index`, { field_name: field, field_schema: schema }, signal);
    },
    async deleteCollection(collection, signal) {
      await request(Accepted, "DELETE", at(collection), undefined, signal);
    },
    upsert: ({ collection, tenant }, points, signal) =>
      upsert(
        collection,
        points.map(({ key, vector, id }) => ({ id: pointId(tenant, key), vector: [...vector], payload: { tenant, id } })),
        signal,
      ),
    remove: ({ collection, tenant }, keys, signal) =>
      removeWhere(collection, { must: [ofTenant(tenant), { has_id: keys.map((key) => pointId(tenant, key)) }] }, signal),
    removeTenant: ({ collection, tenant }, signal) =>
      removeWhere(collection, { should: [ofTenant(tenant), { has_id: [markerId(tenant)] }] }, signal),
    async count({ collection, tenant }, signal) {
      const body = { exact: true, filter: { must: [ofTenant(tenant)] } };
      return (await request(Count, "POST", `${at(collection)}/points/count`, body, signal)).result.count;
    },
    async scroll({ collection, tenant }, from, limit, signal) {
      const body = { limit, filter: { must: [ofTenant(tenant)] }, ...(from === undefined ? {} : { offset: pointId(tenant, from) }) };
      const { points, next_page_offset } = await scroll(collection, body, signal);
      return { keys: points.map(({ id }) => keyOf(id)), next: next_page_offset == null ? undefined : keyOf(next_page_offset) };
    },
    async query({ collection, tenant }, vector, limit, among, signal) {
      const filter = { must: [ofTenant(tenant), ...(among ? [{ key: "id", match: { any: among } }] : [])] };
      const body = { query: [...vector], limit, with_payload: ["id"], with_vector: false, filter };
      const { result } = await request(Query, "POST", `${at(collection)}/points/query`, body, signal);
      return result.points.map(({ payload }) => payload.id);
    },
    async isMarked({ collection, tenant }, signal) {
      const { points } = await scroll(collection, { limit: 1, filter: { must: [{ has_id: [markerId(tenant)] }] } }, signal);
      return points.length > 0;
    },
    async mark({ collection, tenant }, dimension, signal) {
      const vector = Array.from({ length: dimension }, (_, i) => (i === 0 ? 1 : 0));
      await upsert(collection, [{ id: markerId(tenant), vector, payload: { copied: tenant } }], signal);
    },
  };
}

const ofTenant = (tenant: string) => ({ key: "tenant", match: { value: tenant } });
