import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from "@modelcontextprotocol/server";

export interface GuardOptions {
  /** Host names (without port) under which this server is reached, loopback aside. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Host names (without port) whose web pages may call this server, loopback aside. */
  readonly allowedOrigins?: readonly string[] | undefined;
}

/**
 * Refuses what a web page could make a browser send: a request under a name that is not ours (DNS rebinding), or from a
 * page that is not ours. Programs send no Origin and pass. `undefined` means: go on.
 */
export function refuseForeignRequest(request: Request, { allowedHosts = [], allowedOrigins = [] }: GuardOptions): Response | undefined {
  return (
    hostHeaderValidationResponse(request, [...localhostAllowedHostnames(), ...allowedHosts]) ??
    originValidationResponse(request, [...localhostAllowedOrigins(), ...allowedOrigins])
  );
}
