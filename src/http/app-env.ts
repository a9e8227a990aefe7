import type { Identity } from "./admission.ts";

/** What the handler passes to the routes with each request. */
export type AppEnv = { Bindings: { readonly requestId: string; readonly identity: Identity } };
