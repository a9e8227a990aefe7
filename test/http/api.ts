import { type HttpHandler, type HttpOptions, httpHandler } from "../../src/http/app.ts";
import { type Cairn, open } from "../../src/index.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";

export const LOCAL = { remoteAddress: "127.0.0.1" };
export const REMOTE = { remoteAddress: "203.0.113.7" };

export interface Api {
  readonly cairn: Cairn;
  readonly handle: HttpHandler;
  /** Makes a call as the local user, with the token, unless `headers` has a credential or `connection` is given. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  readonly headers?: Record<string, string>;
  readonly connection?: { readonly remoteAddress?: string };
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by tests, which fail where a field is missing
  readonly body: any;
}

/** The API over a memory store, called without a socket. */
export async function api(options: Partial<HttpOptions> = {}): Promise<Api> {
  const cairn = options.cairn ?? (await open({ storage: "memory", embedder: { kind: "none" } }));
  const handle = httpHandler({ localToken: async () => TEST_TOKEN, ...options, cairn });
  return {
    cairn,
    handle,
    async call(method, path, body, { headers = {}, connection, signal } = {}) {
      const credential = connection || "authorization" in headers || "x-api-key" in headers ? {} : bearer(TEST_TOKEN);
      const request = new Request(`http://127.0.0.1${path}`, {
        method,
        headers: { ...credential, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
      return answerOf(await handle(request, connection ?? LOCAL));
    },
  };
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, body: isJson && text ? JSON.parse(text) : text };
}
