import { routeOf } from "../../src/http/routes.ts";
import type { Operation } from "../../src/operations/operation.ts";
import type { AttackCaller } from "./callers.ts";
import type { AttackRequest } from "./client.ts";
import { projectFieldOf } from "./targets.ts";
import type { Trick } from "./tricks.ts";

export type Protocol = "HTTP" | "MCP";

type Input = Record<string, unknown>;

export interface Attack {
  readonly name: string;
  readonly operation: Operation;
  readonly caller: AttackCaller;
  readonly trick: Trick;
  readonly protocol: Protocol;
}

/** Combines operations, callers, tricks and protocols, as far as a protocol has the operation and can carry the trick. */
export function combine(operations: readonly Operation[], callers: readonly AttackCaller[], tricks: readonly Trick[]): Attack[] {
  return operations.flatMap((operation) =>
    callers.flatMap((caller) =>
      tricks.flatMap((trick) =>
        (["HTTP", "MCP"] as const)
          .filter((protocol) => protocol === "HTTP" || (operation.toolset !== "none" && !trick.path && !trick.method))
          .map((protocol) => ({
            name: `${operation.name} | ${caller.name} | ${trick.name} | ${protocol}`,
            operation,
            caller,
            trick,
            protocol,
          })),
      ),
    ),
  );
}

/** Writes an attack as the request that goes over the wire. */
export function requestOf({ operation, caller, trick, protocol }: Attack, target: Input): AttackRequest {
  const field = projectFieldOf(operation);
  const input = trick.input?.(target, field) ?? target;
  const headers = { "content-type": "application/json", ...caller.headers, ...trick.headers };
  const json = trick.json?.(input, field) ?? JSON.stringify(input);
  if (protocol === "MCP")
    return mcpRequest(headers, "tools/call", `{"name":"${operation.name}","arguments":${json.replace(/^\ufeff/, "")}}`);
  const route = routeOf(operation);
  const inPath = route.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(input[name])));
  const body = Object.fromEntries(Object.entries(input).filter(([name]) => !route.pathFields.includes(name)));
  const withBody = route.hasBody;
  const path = withBody ? inPath : `${inPath}${queryOf(body)}`;
  const method = trick.method ?? route.method;
  return {
    method,
    path: trick.path?.(path) ?? path,
    headers,
    ...(withBody && method !== "HEAD" && method !== "TRACE" && { body: trick.json ? json : JSON.stringify(body) }),
  };
}

/** One JSON-RPC request, which the server answers without a session. */
export function mcpRequest(headers: Readonly<Record<string, string>>, method: string, params: string): AttackRequest {
  return {
    method: "POST",
    path: "/mcp",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`,
  };
}

function queryOf(input: Input): string {
  const pairs = Object.entries(input).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, typeof one === "string" ? one : JSON.stringify(one)]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

/** Takes every n-th attack, such that all operations, callers, tricks and protocols stay represented. */
export function sample<T>(attacks: readonly T[], wanted: number): T[] {
  // A step that is coprime to the list's length and has no small divisors does not fall into the period of any dimension.
  const step = Math.max(1, Math.floor(attacks.length / wanted));
  return attacks.filter((_, index) => (index * 7919 + Math.floor(index / 101)) % step === 0);
}
