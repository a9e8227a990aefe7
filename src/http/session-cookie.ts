import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/** The header in which the console sends its half of a session. A page of another origin can neither read the half nor send the header. */
export const PAGE_KEY_HEADER = "x-cairn-page-key";
/** How long a browser stays signed in. */
export const SESSION_MS = 12 * 60 * 60 * 1000;

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const PURPOSE = Buffer.from("cairn console session 1");
/** Longer cookies were not made here. */
const MAX_COOKIE_CHARS = 4_096;

export interface SealedSession {
  /** The page's half: the key that opens the cookie. It is in the page's storage, which belongs to one origin, port included. */
  readonly pageKey: string;
  readonly setCookie: string;
  readonly expiresAt: Date;
}

/**
 * Seals a credential into a cookie that only the page's half opens. Browsers send cookies of a host to all its ports, so another
 * program on this machine can receive the cookie; without the page's half it is noise. The server stores nothing, so a session works
 * on every node and ends when its credential is revoked or rotated.
 */
export function sealSession(credential: string, nowMs: number, isSecure: boolean): SealedSession {
  const key = randomBytes(KEY_BYTES);
  const iv = randomBytes(IV_BYTES);
  const expiresMs = nowMs + SESSION_MS;
  const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(PURPOSE);
  const text = Buffer.concat([cipher.update(JSON.stringify({ credential, expiresMs }), "utf8"), cipher.final()]);
  const value = Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
  const pageKey = key.toString("base64url");
  return { pageKey, setCookie: cookie(pageKey, value, SESSION_MS / 1000, isSecure), expiresAt: new Date(expiresMs) };
}

/** Returns the credential of the session that a request carries in its two halves, or `undefined`. */
export function openSession(headers: Headers, nowMs: number): string | undefined {
  const pageKey = headers.get(PAGE_KEY_HEADER);
  const key = pageKey === null ? undefined : Buffer.from(pageKey, "base64url");
  if (key?.length !== KEY_BYTES) return undefined;
  const sealed = readCookie(headers.get("cookie") ?? "", cookieName(pageKey!));
  if (sealed === undefined || sealed.length <= IV_BYTES + TAG_BYTES) return undefined;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(PURPOSE).setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const text = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
    const { credential, expiresMs } = JSON.parse(text) as { readonly credential: string; readonly expiresMs: number };
    return nowMs < expiresMs ? credential : undefined;
  } catch {
    return undefined; // sealed with another key, or altered
  }
}

/** Returns the header value that deletes the session of a page, if the request names one. */
export function endSession(headers: Headers): string | undefined {
  const pageKey = headers.get(PAGE_KEY_HEADER);
  return pageKey === null ? undefined : cookie(pageKey, "", 0, false);
}

/** Names the cookie after the page's half, so that servers on two ports of one host do not overwrite each other's session. */
function cookieName(pageKey: string): string {
  return `cairn_${createHash("sha256").update(pageKey).digest("hex").slice(0, 16)}`;
}

function cookie(pageKey: string, value: string, maxAgeSeconds: number, isSecure: boolean): string {
  return `${cookieName(pageKey)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

function readCookie(header: string, name: string): Buffer | undefined {
  const found = header.split(";").find((pair) => pair.trimStart().startsWith(`${name}=`));
  const value = found?.trimStart().slice(name.length + 1);
  return value === undefined || value.length > MAX_COOKIE_CHARS ? undefined : Buffer.from(value, "base64url");
}
