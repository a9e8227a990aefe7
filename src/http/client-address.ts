import { isIP } from "node:net";
import { networkMatcher } from "../text/networks.ts";

/** Facts about the connection that only the host knows. */
export interface Connection {
  readonly remoteAddress?: string | undefined;
}

/** Longer chains of proxies do not occur; what lies beyond was written by the client. */
const MAX_HOPS = 32;
const MAX_HOP_CHARS = 64;

/**
 * Returns a function that finds the address whose rate limit a request uses: the connection's, or, where that is a trusted proxy, the
 * rightmost address of X-Forwarded-For that is not. Everything left of it was sent by the client and may be invented. The address never
 * grants access.
 */
export function clientAddress(trustedProxies: readonly string[]): (headers: Headers, connection: Connection) => string {
  const isTrusted = networkMatcher(trustedProxies);
  return (headers, { remoteAddress = "unknown" }) => {
    if (!isTrusted(remoteAddress)) return remoteAddress;
    const forwarded = headers.get("x-forwarded-for")?.slice(-MAX_HOPS * MAX_HOP_CHARS);
    let address = remoteAddress;
    for (const hop of forwarded?.split(",").slice(-MAX_HOPS).reverse() ?? []) {
      const next = addressOf(hop.trim());
      if (next === undefined) break;
      address = next;
      if (!isTrusted(address)) break;
    }
    return address;
  };
}

/** Reads one hop: an address, or an address with a port (`192.0.2.1:80`, `[2001:db8::1]:80`). */
function addressOf(hop: string): string | undefined {
  if (isIP(hop)) return hop;
  const end = hop.startsWith("[") ? hop.indexOf("]") : hop.indexOf(":");
  const address = end === -1 ? "" : hop.slice(hop.startsWith("[") ? 1 : 0, end);
  return isIP(address) ? address : undefined;
}
