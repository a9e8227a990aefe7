import { type Operations, ROUTES } from "../generated/operations.ts";

export type OperationName = keyof Operations;
export type Input<Name extends OperationName> = Operations[Name]["input"];
export type Output<Name extends OperationName> = Operations[Name]["output"];

/** The most tokens that an answer may have, so that lists for people are not shortened as they are for agents. */
export const MAX_TOKENS = 100_000;

/** A refusal of the server: what happened and what to do, in its own words. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const PAGE_KEY = "cairn.page_key";

/** Returns the page's half of the session; the other half is a cookie that no script can read. */
export function pageKey(): string | null {
  return localStorage.getItem(PAGE_KEY);
}

export function storePageKey(key: string | undefined): void {
  if (key === undefined) localStorage.removeItem(PAGE_KEY);
  else localStorage.setItem(PAGE_KEY, key);
}

let onUnauthorized = () => {};

/** Registers what happens when a session ends: the console then asks to sign in again. */
export function whenUnauthorized(handler: () => void): void {
  onUnauthorized = handler;
}

/** Calls an operation. The path is relative, so the console also works below a proxy's prefix. */
export async function call<Name extends OperationName>(name: Name, input: Input<Name>, signal?: AbortSignal): Promise<Output<Name>> {
  const [, method, template] = ROUTES[name];
  const rest: Record<string, unknown> = { ...input };
  const path = template.replace(/\{(\w+)\}/g, (_, field: string) => {
    const value = encodeURIComponent(String(rest[field]));
    delete rest[field];
    return value;
  });
  const hasBody = method === "POST" || method === "PATCH";
  const query = hasBody ? "" : queryOf(rest);
  return (await request(method, `${path}${query}`, hasBody ? rest : undefined, signal)) as Output<Name>;
}

/** Sends a request with the session and returns the JSON of its answer. */
export async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  const response = await send(method, path, body, signal);
  if (response.status === 204) return undefined;
  const answer = await response.json().catch(() => undefined);
  if (response.ok) return answer;
  if (response.status === 401 && !path.startsWith("/session")) onUnauthorized();
  throw new ApiError(
    response.status,
    answer?.error?.code ?? "internal",
    answer?.error?.message ?? `The server answered ${response.status}.`,
  );
}

/** Sends a request with the session and returns its response, for streams. */
export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal, headers: Record<string, string> = {}) {
  const key = pageKey();
  try {
    return await fetch(new URL(`.${path}`, document.baseURI), {
      method,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === null ? {} : { "x-cairn-page-key": key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The server does not answer. Check that cairn serve or cairn ui is running.");
  }
}

function queryOf(fields: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
  }
  return query.size === 0 ? "" : `?${query}`;
}
