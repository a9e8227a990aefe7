import { localhostAllowedHostnames, localhostAllowedOrigins, validateHostHeader, validateOriginHeader } from "@modelcontextprotocol/server";
import type { Caller } from "../invoke.ts";
import { rpcErrorResponse } from "./rpc-response.ts";

export interface GuardOptions {
  /** Host names (without port) under which this server is reached, loopback aside. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Host names (without port) whose web pages may call this server, loopback aside. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

/**
 * Refuses what a web page could make a browser send: a request under a name that is not ours (DNS rebinding), or from a
 * page that is not ours. A page that resolves its own name to this machine has no key, so with one any name will do.
 * Programs send no Origin and pass. `undefined` means: go on.
 */
export function refuseForeignRequest(
  request: Request,
  caller: Caller,
  { allowedHosts = [], allowedOrigins = [] }: GuardOptions,
): Response | undefined {
  const host = validateHostHeader(request.headers.get("host") ?? new URL(request.url).host, [
    ...localhostAllowedHostnames(),
    ...allowedHosts,
  ]);
  if (!host.ok && caller.keyId === undefined)
    return refused(host.message, "Use localhost, send a key, or add the name to http.allowed_hosts.");
  const origin = validateOriginHeader(request.headers.get("origin"), [...localhostAllowedOrigins(), ...allowedOrigins]);
  return origin.ok ? undefined : refused(origin.message, "Add the page's origin to http.allowed_origins to let it in.");
}

function refused(problem: string, advice: string): Response {
  return rpcErrorResponse(403, -32000, `${problem.slice(0, 200)}. ${advice}`);
}
