import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Ajv } from "ajv";

interface Point {
  readonly id: number;
  readonly vector: number[];
  readonly payload: Record<string, unknown>;
}

interface Collection {
  readonly dimension: number;
  readonly points: Map<number, Point>;
}

export interface QdrantStandIn {
  readonly url: string;
  /** Method and path of all calls, and their violations of the published schema. */
  readonly calls: string[];
  readonly violations: string[];
  readonly collections: Map<string, Collection>;
  /** Answer to every call while it is set. */
  trouble?: "hang up" | "error 500" | "garbage" | undefined;
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
    const body = text === "" ? undefined : JSON.parse(text);
    const [, , encoded, ...rest] = path.split("/");
    const route = encoded === undefined ? "/collections" : ["/collections/{collection_name}", ...rest].join("/");
    self.violations.push(...check.request(route, method, body));
    const answer = perform(self.collections, route, method, encoded && decodeURIComponent(encoded), body);
    if ("error" in answer) return void refuse(answer.status, answer.error);
    const whole = { time: 0.001, status: "ok", result: answer.result };
    self.violations.push(...check.answer(route, method, whole));
    send(200, whole);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const self: QdrantStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    violations: [],
    collections: new Map(),
    close: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  };
  return self;
}

type Answer = { readonly result: unknown } | { readonly status: number; readonly error: string };

// biome-ignore lint/suspicious/noExplicitAny: bodies were held against the schema before
function perform(collections: Map<string, Collection>, route: string, method: string, name: string | undefined, body: any): Answer {
  if (name === undefined) return { result: { collections: [...collections.keys()].map((known) => ({ name: known })) } };
  const found = collections.get(name);
  const end = route.replace("/collections/{collection_name}", "");
  if (end === "" && method === "put") {
    if (found) return { status: 409, error: `Wrong input: Collection \`${name}\` already exists!` };
    collections.set(name, { dimension: body.vectors.size, points: new Map() });
    return { result: true };
  }
  if (end === "" && method === "delete") return { result: collections.delete(name) };
  if (!found) return { status: 404, error: `Not found: Collection \`${name}\` doesn't exist!` };
  const { points, dimension } = found;
  const wrong = (vector: number[]) =>
    vector.length === dimension
      ? undefined
      : { status: 400, error: `Wrong input: Vector dimension error: expected dim: ${dimension}, got ${vector.length}` };
  const updated = { result: { operation_id: 1, status: "completed" } };
  switch (end) {
    case "/index":
      return updated;
    case "/points": {
      const refusal = (body.points as Point[]).map(({ vector }) => wrong(vector)).find(Boolean);
      if (refusal) return refusal;
      for (const point of body.points as Point[]) points.set(point.id, point);
      return updated;
    }
    case "/points/delete":
      for (const id of body.points as number[]) points.delete(id);
      return updated;
    case "/points/count":
      return { result: { count: points.size } };
    case "/points/scroll": {
      const ids = [...points.keys()].sort((a, b) => a - b).filter((id) => id >= (body.offset ?? 0));
      return { result: { points: ids.slice(0, body.limit).map((id) => ({ id })), next_page_offset: ids[body.limit] ?? null } };
    }
    case "/points/query": {
      const refusal = wrong(body.query);
      if (refusal) return refusal;
      const among = body.filter && new Set(body.filter.must[0].match.any);
      const scored = [...points.values()]
        .filter(({ payload }) => !among || among.has(payload.id))
        .map(({ id, payload, vector }) => ({ id, version: 1, score: cosine(vector, body.query), payload }))
        .sort((a, b) => b.score - a.score);
      return { result: { points: scored.slice(0, body.limit) } };
    }
    default:
      return { status: 404, error: "Not found" };
  }
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
