import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Ajv } from "ajv";

interface Point {
  readonly id: string;
  readonly vector: number[];
  readonly payload: Record<string, unknown>;
}

interface Collection {
  readonly dimension: number;
  readonly indexes: Map<string, unknown>;
  readonly points: Map<string, Point>;
}

interface Refusal {
  readonly status: number;
  readonly error: string;
}

/** A request as a test sees it. */
interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

export interface QdrantStandIn {
  readonly url: string;
  /** Method and path of all calls, and their violations of the published schema. */
  readonly calls: string[];
  readonly violations: string[];
  readonly collections: Map<string, Collection>;
  /** Answer to every call while it is set. */
  trouble?: "hang up" | "error 500" | "garbage" | undefined;
  /** Status of every update while it is set. */
  updateStatus?: "acknowledged" | "wait_timeout" | undefined;
  /** Decides about single requests. */
  refuse?: ((request: Request) => Refusal | undefined) | undefined;
  /** Closes the port and all connections. Completed updates are on disk, so they are there after `start`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a test double of Qdrant for the calls that Cairn makes. Every request and answer is validated against Qdrant's OpenAPI schema. */
export async function qdrantStandIn(apiKey?: string): Promise<QdrantStandIn> {
  const check = schemaCheck();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const method = request.method!.toLowerCase();
    const [path = ""] = request.url!.split("?");
    self.calls.push(`${request.method} ${path}`);
    if (self.trouble === "hang up") return void response.destroy();
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const refuse = (status: number, error: string) => send(status, { time: 0.001, status: { error }, result: null });
    if (self.trouble === "error 500") return void refuse(500, "Service internal error: task panicked");
    if (self.trouble === "garbage") return void response.writeHead(200).end("<html>");
    if (apiKey !== undefined && request.headers["api-key"] !== apiKey) return void refuse(401, "Must provide an API key");
    const refusal = self.refuse?.({ method: request.method!, path, body: text });
    if (refusal) return void refuse(refusal.status, refusal.error);
    const body = text === "" ? undefined : JSON.parse(text);
    const [, , encoded, ...rest] = path.split("/");
    const route = encoded === undefined ? "/collections" : ["/collections/{collection_name}", ...rest].join("/");
    self.violations.push(...check.request(route, method, body));
    if (/\/points\/./.test(route) && !namesTenant(body?.filter)) self.violations.push(`${method} ${route} names no tenant`);
    const answer = perform(self.collections, route, method, encoded && decodeURIComponent(encoded), body);
    if ("error" in answer) return void refuse(answer.status, answer.error);
    const { result } = answer;
    const status = isUpdate(result) && self.updateStatus ? { ...result, status: self.updateStatus } : result;
    const whole = { time: 0.001, status: "ok", result: status };
    self.violations.push(...check.answer(route, method, whole));
    send(200, whole);
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const kill = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const self: QdrantStandIn = {
    url: `http://127.0.0.1:${port}`,
    calls: [],
    violations: [],
    collections: new Map(),
    kill,
    start: () => listen(port),
    close: async () => {
      if (server.listening) await kill();
    },
  };
  return self;
}

type Answer = { readonly result: unknown } | Refusal;

const isUpdate = (result: unknown): result is object => typeof result === "object" && result !== null && "operation_id" in result;

// biome-ignore lint/suspicious/noExplicitAny: bodies were held against the schema before
function perform(collections: Map<string, Collection>, route: string, method: string, name: string | undefined, body: any): Answer {
  if (name === undefined) return { result: { collections: [...collections.keys()].map((known) => ({ name: known })) } };
  const found = collections.get(name);
  const end = route.replace("/collections/{collection_name}", "");
  if (end === "" && method === "put") {
    if (found) return { status: 409, error: `Wrong input: Collection \`${name}\` already exists!` };
    collections.set(name, { dimension: body.vectors.size, indexes: new Map(), points: new Map() });
    return { result: true };
  }
  if (end === "" && method === "delete") return { result: collections.delete(name) };
  if (!found) return { status: 404, error: `Not found: Collection \`${name}\` doesn't exist!` };
  if (end === "") return { result: describe(found) };
  const { points, dimension } = found;
  const wrong = (vector: number[]) => {
    if (vector.some((value) => typeof value !== "number"))
      return { status: 400, error: "Format error in JSON body: data did not match any variant" };
    return vector.length === dimension
      ? undefined
      : { status: 400, error: `Wrong input: Vector dimension error: expected dim: ${dimension}, got ${vector.length}` };
  };
  const updated = { result: { operation_id: 1, status: "completed" } };
  const matching = () => [...points.values()].filter((point) => passes(point, body.filter));
  switch (end) {
    case "/index":
      found.indexes.set(body.field_name, body.field_schema);
      return updated;
    case "/points": {
      const refusal = (body.points as Point[]).map(({ vector }) => wrong(vector)).find(Boolean);
      if (refusal) return refusal;
      for (const point of body.points as Point[]) points.set(point.id, point);
      return updated;
    }
    case "/points/delete":
      for (const { id } of matching()) points.delete(id);
      return updated;
    case "/points/count":
      return { result: { count: matching().length } };
    case "/points/scroll": {
      const ids = matching()
        .map(({ id }) => id)
        .sort()
        .filter((id) => id >= (body.offset ?? ""));
      return { result: { points: ids.slice(0, body.limit).map((id) => ({ id })), next_page_offset: ids[body.limit] ?? null } };
    }
    case "/points/query": {
      const refusal = wrong(body.query);
      if (refusal) return refusal;
      const scored = matching()
        .map(({ id, payload, vector }) => ({ id, version: 1, score: cosine(vector, body.query), payload: { id: payload.id } }))
        .sort((a, b) => b.score - a.score);
      return { result: { points: scored.slice(0, body.limit) } };
    }
    default:
      return { status: 404, error: "Not found" };
  }
}

/** Returns what Qdrant reports of a collection, its defaults included. */
function describe({ dimension, indexes, points }: Collection) {
  return {
    status: "green",
    optimizer_status: "ok",
    points_count: points.size,
    segments_count: 1,
    config: {
      params: { vectors: { size: dimension, distance: "Cosine" } },
      hnsw_config: { m: 0, payload_m: 16, ef_construct: 100, full_scan_threshold: 10_000 },
      optimizer_config: { deleted_threshold: 0.2, vacuum_min_vector_number: 1_000, default_segment_number: 0, flush_interval_sec: 5 },
    },
    payload_schema: Object.fromEntries(
      [...indexes].map(([field, params]) => [field, { data_type: "keyword", params, points: points.size }]),
    ),
  };
}

interface Condition {
  readonly key?: string;
  readonly match?: { readonly value?: unknown; readonly any?: readonly unknown[] };
  readonly has_id?: readonly string[];
}

interface Filter {
  readonly must?: readonly Condition[];
  readonly should?: readonly Condition[];
}

function passes(point: Point, { must = [], should = [] }: Filter = {}): boolean {
  const holds = ({ key, match, has_id }: Condition) =>
    has_id ? has_id.includes(point.id) : match?.any ? match.any.includes(point.payload[key!]) : match?.value === point.payload[key!];
  return must.every(holds) && (should.length === 0 || should.some(holds));
}

/** Returns whether a filter reaches one tenant only: by its name, or by the ids of points, which contain it. */
function namesTenant({ must = [], should = [] }: Filter = {}): boolean {
  const names = ({ key, match, has_id }: Condition) => has_id !== undefined || (key === "tenant" && typeof match?.value === "string");
  return must.some(names) || (should.length > 0 && should.every(names));
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function schemaCheck() {
  const file = join(import.meta.dirname, "../fixtures/qdrant-openapi-1.18.2.json");
  const { paths, components } = withNulls(JSON.parse(readFileSync(file, "utf8")));
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: "qdrant", components });
  const validate = (schema: unknown, value: unknown, what: string): string[] => {
    const wanted = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"qdrant#/components/'));
    const valid = ajv.validate(wanted, value);
    return valid ? [] : [`${what}: ${ajv.errorsText()}`];
  };
  return {
    request(route: string, method: string, body: unknown): string[] {
      const operation = paths[route]?.[method];
      if (!operation) return [`${method} ${route} is no call of Qdrant's`];
      const schema = operation.requestBody?.content["application/json"].schema;
      if (!schema) return body === undefined ? [] : [`${method} ${route} takes no body`];
      return validate(schema, body, `${method} ${route}`);
    },
    answer(route: string, method: string, body: unknown): string[] {
      return validate(paths[route][method].responses["200"].content["application/json"].schema, body, `answer to ${method} ${route}`);
    },
  };
}

/** Translates `nullable` of OpenAPI 3.0 to JSON Schema. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is any JSON
function withNulls(schema: any): any {
  if (Array.isArray(schema)) return schema.map(withNulls);
  if (schema === null || typeof schema !== "object") return schema;
  const { nullable, ...rest } = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withNulls(value)]));
  if (nullable !== true) return schema.nullable === undefined ? rest : { ...rest, nullable };
  return Object.keys(rest).length === 0 ? { type: "null" } : { anyOf: [rest, { type: "null" }] };
}
