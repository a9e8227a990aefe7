import { localhostAllowedOrigins, validateOriginHeader } from "@modelcontextprotocol/server";
import { rpcErrorResponse } from "./rpc-response.ts";

export interface GuardOptions {
  /** Host names (without port) whose web pages may call this server, loopback aside. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

/**
 * Refuses requests of web pages that are not allowed, as the MCP specification demands. Programs send no Origin and pass. The name in Host
 * is not checked: a page that resolves its own name to this machine (DNS rebinding) has no credential. `undefined` lets the request pass.
 */
export function refuseForeignRequest(request: Request, { allowedOrigins = [] }: GuardOptions): Response | undefined {
  const origin = validateOriginHeader(request.headers.get("origin"), [...localhostAllowedOrigins(), ...allowedOrigins]);
  if (origin.ok) return undefined;
  return rpcErrorResponse(403, -32000, `${origin.message.slice(0, 200)}. Add the page's origin to http.allowed_origins to let it in.`);
}
