import { createHash, timingSafeEqual } from "node:crypto";
import type { ApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { type Caller, LOCAL_CALLER } from "../operations/invoke.ts";

export interface Credentials {
  readonly verifyKey: (presented: string) => Promise<ApiKey | undefined>;
  /** Returns the token of the local user; without it only keys are accepted. */
  readonly localToken: (() => Promise<string | undefined>) | undefined;
}

/** Who makes a request: a caller with a valid credential, or nobody and why. */
export type Identity =
  | { readonly caller: Caller; readonly refusal?: undefined }
  | { readonly caller?: undefined; readonly refusal: CairnError };

/**
 * Identifies a caller by its credential and by nothing else: behind a reverse proxy every request comes from loopback, and no header
 * proves the opposite.
 */
export async function identify(headers: Headers, credentials: Credentials): Promise<Identity> {
  const presented = presentedCredential(headers);
  if (presented === undefined)
    return refuse(
      "This call has no credential. Send Authorization: Bearer <credential>: the local token (`cairn token` prints it) or an API key (`cairn key create` makes one).",
    );
  try {
    const token = await credentials.localToken?.();
    // Compared also where there is no token, so that the time of an answer does not depend on it; an empty token matches nothing.
    if (sameSecret(presented, token ?? "") && token) return { caller: LOCAL_CALLER };
    const key = await credentials.verifyKey(presented);
    if (key) return { caller: { access: key.access, projects: key.projects, keyId: key.id } };
  } catch (cause) {
    // The reason names files of the server; it is for the log.
    return { refusal: new CairnError("unavailable", "Credentials cannot be checked now. The server's log has the reason.", { cause }) };
  }
  return refuse(
    "This credential is not valid. Use the local token (`cairn token` prints it) or an API key that is neither expired nor revoked.",
  );
}

function refuse(message: string): Identity {
  return { refusal: new CairnError("unauthorized", message) };
}

/** Returns the credential of a request. Another scheme than Bearer is an invalid credential, not a missing one. */
function presentedCredential(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) return /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "invalid";
  return headers.get("x-api-key") ?? undefined;
}

/** Compares in constant time. Hashes have the same length whatever was presented. */
function sameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
