import { isIP } from "node:net";
import { type Caller, LOCAL_CALLER } from "../invoke.ts";
import type { ApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";

/** What the host knows of the connection. Without a remote address nobody counts as local. */
export interface Connection {
  readonly remoteAddress?: string | undefined;
}

export interface CallerRules {
  readonly verify: (presented: string) => Promise<ApiKey | undefined>;
  /** Refuse also the person at this machine without a key. */
  readonly requireKey: boolean;
  /** Web pages that may call without a key, such as `http://localhost:5173`. */
  readonly allowedOrigins: readonly string[];
  /** Takes a token of this caller, or raises `rate_limited`. */
  readonly takeToken: (caller: string) => void;
}

/** Headers that only a proxy adds: behind one, a connection from loopback may come from anywhere. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/** Who calls. A key that is presented must hold; without one, only the person at this machine is let in, and never a web page of another site. */
export async function identify(request: Request, connection: Connection, rules: CallerRules): Promise<Caller> {
  const presented = presentedKey(request.headers);
  if (presented !== undefined) {
    const key = await rules.verify(presented);
    rules.takeToken(key ? `key:${key.id}` : addressOf(connection)); // guessing is limited by address
    if (!key) throw new CairnError("unauthorized", "This key is not valid. Check it, or ask for a new one.");
    return { access: key.access, projects: key.projects, keyId: key.id };
  }
  const local = !rules.requireKey && isLoopback(connection.remoteAddress ?? "") && !PROXY_HEADERS.some((name) => request.headers.has(name));
  if (!local) {
    rules.takeToken(addressOf(connection));
    throw new CairnError("unauthorized", "A key is needed. Send it as Authorization: Bearer <key>; `cairn key create` makes one.");
  }
  assertLocalPage(request, rules.allowedOrigins);
  return LOCAL_CALLER;
}

export function addressOf({ remoteAddress }: Connection): string {
  return `address:${remoteAddress ?? "unknown"}`;
}

function presentedKey(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ""; // another scheme is a wrong key, not none
  return headers.get("x-api-key") ?? undefined;
}

/**
 * A web page can make a browser on this machine call us, by its own name resolved to 127.0.0.1 (DNS rebinding) or from
 * another origin. Such calls carry the page's name in Host or Origin.
 */
function assertLocalPage(request: Request, allowedOrigins: readonly string[]): void {
  const host = request.headers.get("host") ?? new URL(request.url).host;
  if (!isLoopback(hostnameOf(host)))
    throw new CairnError("forbidden", `Calls without a key must be made to localhost, not to ${JSON.stringify(host.slice(0, 100))}.`);
  const origin = request.headers.get("origin");
  if (origin === null || allowedOrigins.includes(origin) || origin === `http://${host}` || origin === `https://${host}`) return;
  throw new CairnError(
    "forbidden",
    `Web pages of ${JSON.stringify(origin.slice(0, 100))} may not call without a key. Allow the origin in the settings, or use a key.`,
  );
}

function hostnameOf(host: string): string {
  return host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** Whether an address or host name means this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}
