import fc from "fast-check";
import type { AttackCaller } from "../callers.ts";
import type { AttackRequest } from "../client.ts";
import { mcpRequest } from "../corpus.ts";
import type { DocumentedOperation } from "./document.ts";
import { mutate, toJson } from "./hostile.ts";
import { maximalValue } from "./maximal.ts";
import { type Grammar, validValue } from "./valid.ts";

export interface FuzzRequest {
  readonly operation: DocumentedOperation;
  readonly caller: AttackCaller;
  readonly protocol: "HTTP" | "MCP";
  readonly request: AttackRequest;
}

/** Characters of a request's texts: close to what the server reads at most. */
const LARGEST_CHARS = 1_900_000;

type Input = Record<string, unknown>;

/** Operations that copy or check whole databases take turns less often, or they would fill the disk and the time. */
const HEAVY_MS = 3_600_000;

/** Generates requests from the server's description: valid inputs, mutated inputs and broken transport. */
export function fuzzRequests(
  operations: readonly DocumentedOperation[],
  callers: readonly AttackCaller[],
  grammar: Grammar,
): fc.Arbitrary<FuzzRequest> {
  const each = operations.map((operation) => ({
    weight: operation.timeoutMs >= HEAVY_MS && operation.timeoutMs < 43_200_000 ? 1 : 10,
    arbitrary: requestsTo(operation, callers, grammar),
  }));
  return fc.oneof(...each);
}

/** The largest requests that the description allows, one per operation. */
export function maximalRequests(operations: readonly DocumentedOperation[], caller: AttackCaller, grammar: Grammar): FuzzRequest[] {
  return operations
    .filter(({ body }) => body)
    .map((operation) => {
      const request = overHttp(operation, maximalValue(operation.body!, grammar, { chars: LARGEST_CHARS }));
      return { operation, caller, protocol: "HTTP", request: { ...request, headers: { ...request.headers, ...caller.headers } } };
    });
}

function requestsTo(operation: DocumentedOperation, callers: readonly AttackCaller[], grammar: Grammar): fc.Arbitrary<FuzzRequest> {
  const [first, ...others] = callers;
  const caller = fc.oneof({ weight: 5, arbitrary: fc.constant(first!) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
  const input = inputOf(operation, grammar);
  const payload = fc.oneof({ weight: 3, arbitrary: input }, { weight: 4, arbitrary: input.chain((valid) => mutate(valid)) });
  const protocol = fc.constantFrom("HTTP", "HTTP", "HTTP", "HTTP", "MCP");
  return fc.tuple(caller, payload, protocol, transport).map(([who, value, over, change]): FuzzRequest => {
    const request = over === "MCP" ? overMcp(operation, value) : overHttp(operation, value);
    return {
      operation,
      caller: who,
      protocol: over as "HTTP" | "MCP",
      request: change({ ...request, headers: { ...request.headers, ...who.headers } }),
    };
  });
}

/** All fields that the description names, wherever they travel. */
function inputOf({ body, parameters }: DocumentedOperation, grammar: Grammar): fc.Arbitrary<Input> {
  const fields = fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, validValue(schema, grammar, name)])), {
    requiredKeys: parameters.filter(({ required }) => required).map(({ name }) => name),
  });
  return fc
    .tuple(fields, body ? validValue(body, grammar) : fc.constant({}))
    .map(([first, second]) => ({ ...first, ...(second as Input) }));
}

function overHttp({ method, path, parameters, body }: DocumentedOperation, value: unknown): AttackRequest {
  const fields = isPlain(value) ? value : {};
  const inPath = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
  const where = path.replace(/\{(\w+)\}/g, (_, name) => percentEncoded(textOf(fields[name] ?? "none")).slice(0, 4_000) || "none");
  const rest = isPlain(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => !inPath.includes(name))) : value;
  const headers = { "content-type": "application/json" };
  if (body) return { method, path: where, headers, body: toJson(rest) };
  const query = isPlain(rest)
    ? Object.entries(rest)
        .map(([name, one]) => `${percentEncoded(name)}=${percentEncoded(textOf(one))}`)
        .join("&")
    : percentEncoded(toJson(rest));
  return { method, path: `${where}${query ? `?${query}` : ""}`.slice(0, 12_000), headers };
}

function overMcp({ name }: DocumentedOperation, value: unknown): AttackRequest {
  return mcpRequest({}, "tools/call", `{"name":${JSON.stringify(name)},"arguments":${toJson(value)}}`);
}

function isPlain(value: unknown): value is Input {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : toJson(value);
}

function percentEncoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

type Change = (request: AttackRequest) => AttackRequest;

const withHeaders =
  (headers: Record<string, string | readonly string[]>): Change =>
  (request) => ({ ...request, headers: { ...request.headers, ...headers } });
const withBody =
  (change: (body: Buffer) => Buffer): Change =>
  (request) =>
    request.body === undefined ? request : { ...request, body: change(Buffer.from(request.body)) };

/** Damages in transport. Most requests arrive as they were written. */
const transport: fc.Arbitrary<Change> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Change>((request) => request) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...[
        "text/plain",
        "application/json; charset=utf-16",
        "multipart/form-data",
        ";;;",
        "application/x-www-form-urlencoded",
        "application/json-seq",
        "*/*",
      ].map((type) => withHeaders({ "content-type": type })),
      ...["gzip", "br", "identity", "deflate, gzip"].map((encoding) => withHeaders({ "content-encoding": encoding })),
      withHeaders({ authorization: ["Bearer a", "Bearer b"] }),
      withHeaders({ "x-request-id": "a".repeat(5_000), "x-api-key": "x".repeat(5_000) }),
      withHeaders({ traceparent: "00-0-0-0", tracestate: "=".repeat(2_000) }),
      withHeaders({ accept: "text/html", "if-none-match": "*", range: "bytes=0-1", expect: "nothing" }),
      withHeaders({ host: "attacker.example", origin: "null", "sec-fetch-site": "cross-site" }),
      withHeaders({ "x-forwarded-for": "127.0.0.1, ".repeat(200), forwarded: "for=".repeat(500) }),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      withBody((body) => body.subarray(0, Math.floor(body.length / 2))),
      withBody((body) => Buffer.concat([body, body])),
      withBody((body) => Buffer.concat([body, Buffer.from([0xff, 0xfe, 0x00])])),
      withBody((body) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body])),
      withBody((body) => Buffer.from(body.toString("utf8"), "utf16le")),
      withBody((body) => Buffer.from(body.map((byte, index) => (index % 7 === 3 ? byte ^ 0x80 : byte)))),
      withBody(() => Buffer.alloc(0)),
      withBody(() => Buffer.alloc(300_000, "[")),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Change>(
      (request) => ({ ...request, path: `${request.path}?%zz=%&=&&a=%c3%28&project_path=%ff` }),
      (request) => ({ ...request, path: `${request.path}/..%2f..%2f` }),
      (request) => ({ ...request, path: `${request.path}%00` }),
      (request) => ({ ...request, path: `/${"http://".repeat(1_500)}` }),
      (request) => ({ ...request, path: `/${"a:".repeat(5_000)}@` }),
      (request) => ({ ...request, path: `/?${"key=".repeat(3_000)}` }),
      (request) => ({ ...request, method: "PUT" }),
      (request) => ({ ...request, method: "OPTIONS" }),
    ),
  },
);
