import { signal } from "@preact/signals";
import { ROUTES } from "../generated/operations.ts";
import { ApiError, type OperationName, request, storePageKey, whenUnauthorized } from "./call.ts";

/** Who is signed in, and what they may do. */
export interface Session {
  readonly access: "read" | "write" | "admin";
  readonly all_projects: boolean;
  readonly projects: readonly string[];
  readonly key_id?: string;
  /** The server runs as this user, and may read the folders of projects for them. */
  readonly indexes_folders?: boolean;
  readonly version: string;
  /** The id to follow changes after, so that none between the first answer and the stream is missed. */
  readonly event_id: string;
}

/** `undefined` while it is unknown, `null` while nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);

const RANK = { read: 0, write: 1, admin: 2 };

/** Whether the caller may use an operation. Pages hide actions that would be refused. */
export function may(name: OperationName): boolean {
  const caller = session.value;
  return caller ? RANK[caller.access] >= RANK[ROUTES[name][0]] : false;
}

/** Whether the caller may see what belongs to no single project: systems, keys, metrics. */
export function seesAll(): boolean {
  return session.value?.all_projects === true;
}

/** Finds out who is signed in. A code in the address, which `cairn ui` puts there, signs in and disappears from the address. */
export async function openSession(): Promise<void> {
  whenUnauthorized(() => {
    session.value = null;
  });
  const [path = "", query = ""] = location.hash.slice(1).split("?");
  const params = new URLSearchParams(query);
  const code = params.get("code");
  if (code !== null) {
    params.delete("code");
    history.replaceState(null, "", `#${path}${params.size > 0 ? `?${params}` : ""}`);
    dispatchEvent(new HashChangeEvent("hashchange")); // the pages make their links from the address
    await signIn({ code }).catch(() => restore());
  } else await restore();
}

/** Exchanges a key or a one-time code for a session. */
export async function signIn(credential: { readonly key: string } | { readonly code: string }): Promise<void> {
  const { page_key, ...caller } = (await request("POST", "/session", credential)) as Session & { readonly page_key: string };
  storePageKey(page_key);
  session.value = caller;
}

export async function signOut(): Promise<void> {
  await request("DELETE", "/session").catch(() => undefined);
  storePageKey(undefined);
  session.value = null;
}

async function restore(): Promise<void> {
  try {
    session.value = (await request("GET", "/session")) as Session;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    session.value = null;
  }
}
