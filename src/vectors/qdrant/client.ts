import { z } from "zod";
import { CairnError } from "../../model/errors.ts";
import { waitLimitMs } from "../../scheduling/calls.ts";

export interface QdrantOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Milliseconds for one request; default five seconds. */
  readonly timeoutMs?: number | undefined;
}

export interface QdrantPoint {
  readonly id: number;
  readonly vector: Float32Array;
  readonly payload: { readonly id: string };
}

/** The part of the REST API of Qdrant that Cairn uses (1.10 and newer: `/points/query`). */
export interface QdrantClient {
  /** Returns the names of all collections on the server. */
  collections(signal?: AbortSignal): Promise<readonly string[]>;
  createCollection(name: string, dimension: number, signal?: AbortSignal): Promise<void>;
  deleteCollection(name: string, signal?: AbortSignal): Promise<void>;
  /** Resolves when the points are searchable. */
  upsert(name: string, points: readonly QdrantPoint[], signal?: AbortSignal): Promise<void>;
  remove(name: string, ids: readonly number[], signal?: AbortSignal): Promise<void>;
  count(name: string, signal?: AbortSignal): Promise<number>;
  /** Returns ids in order, and the start of the next page. */
  scroll(
    name: string,
    offset: number | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<{ ids: number[]; next: number | undefined }>;
  /** Returns the record ids of the nearest points, best first, among the given records or all. */
  query(name: string, vector: Float32Array, limit: number, among: readonly string[] | undefined, signal?: AbortSignal): Promise<string[]>;
}

const Done = z.object({ result: z.unknown() });
const Collections = z.object({ result: z.object({ collections: z.array(z.object({ name: z.string() })) }) });
const Count = z.object({ result: z.object({ count: z.int() }) });
const Scroll = z.object({
  result: z.object({ points: z.array(z.object({ id: z.int() })), next_page_offset: z.int().nullish() }),
});
const Query = z.object({ result: z.object({ points: z.array(z.object({ payload: z.object({ id: z.string() }) })) }) });

const TIMEOUT_MS = 5_000;

export function qdrantClient({ url, apiKey, timeoutMs = TIMEOUT_MS }: QdrantOptions): QdrantClient {
  const base = url.replace(/(?<!\/)\/+$/, "");

  async function call<Schema extends z.ZodType>(
    schema: Schema,
    method: "GET" | "PUT" | "POST" | "DELETE",
    path: string,
    body: unknown,
    signal: AbortSignal | undefined,
  ): Promise<z.output<Schema>> {
    // The database can answer instead if the call has time left.
    const limitMs = Math.floor(Math.min(timeoutMs, waitLimitMs(Number.POSITIVE_INFINITY) / 2));
    const timeout = AbortSignal.timeout(limitMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(base + path, {
        method,
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...(apiKey ? { "api-key": apiKey } : {}) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        redirect: "error", // a key must not follow a redirect to another host
      });
      text = await response.text();
    } catch (cause) {
      signal?.throwIfAborted();
      const why = timeout.aborted ? `no answer within ${limitMs} ms` : "it cannot be reached";
      throw new CairnError("unavailable", `Qdrant does not answer: ${why}. Check qdrant.url.`, { cause });
    }
    if (!response.ok)
      throw new CairnError("unavailable", `Qdrant refused the request: ${errorOf(text) ?? `status ${response.status}`}`, {
        details: { status: response.status },
      });
    const parsed = schema.safeParse(readJson(text));
    if (!parsed.success) throw new CairnError("unavailable", "Qdrant returned an unexpected response.");
    return parsed.data;
  }

  const at = (name: string) => `/collections/${encodeURIComponent(name)}`;
  return {
    async collections(signal) {
      const { result } = await call(Collections, "GET", "/collections", undefined, signal);
      return result.collections.map(({ name }) => name);
    },
    async createCollection(name, dimension, signal) {
      await call(Done, "PUT", at(name), { vectors: { size: dimension, distance: "Cosine" } }, signal);
      // Filtered searches select records by id.
      await call(Done, "PUT", `${at(name)}/index?wait=true`, { field_name: "id", field_schema: "keyword" }, signal);
    },
    async deleteCollection(name, signal) {
      await call(Done, "DELETE", at(name), undefined, signal);
    },
    async upsert(name, points, signal) {
      const body = { points: points.map(({ id, vector, payload }) => ({ id, vector: [...vector], payload })) };
      await call(Done, "PUT", `${at(name)}/points?wait=true`, body, signal);
    },
    async remove(name, ids, signal) {
      await call(Done, "POST", `${at(name)}/points/delete?wait=true`, { points: ids }, signal);
    },
    async count(name, signal) {
      return (await call(Count, "POST", `${at(name)}/points/count`, { exact: true }, signal)).result.count;
    },
    async scroll(name, offset, limit, signal) {
      const body = { limit, with_payload: false, with_vector: false, ...(offset === undefined ? {} : { offset }) };
      const { result } = await call(Scroll, "POST", `${at(name)}/points/scroll`, body, signal);
      return { ids: result.points.map(({ id }) => id), next: result.next_page_offset ?? undefined };
    },
    async query(name, vector, limit, among, signal) {
      const filter = among && { must: [{ key: "id", match: { any: among } }] };
      const body = { query: [...vector], limit, with_payload: true, with_vector: false, ...(filter ? { filter } : {}) };
      const { result } = await call(Query, "POST", `${at(name)}/points/query`, body, signal);
      return result.points.map(({ payload }) => payload.id);
    },
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, such as a page of a proxy
  }
}

function errorOf(text: string): string | undefined {
  const parsed = z.object({ status: z.object({ error: z.string() }) }).safeParse(readJson(text));
  return parsed.success ? parsed.data.status.error.slice(0, 500) : undefined;
}
