export type { RateLimit } from "../scheduling/rate-limit.ts";
export { type HttpHandler, type HttpOptions, httpHandler, type MountContext, type MountedHandler } from "./app.ts";
export type { Connection } from "./client-address.ts";
export { HTTP_STATUS } from "./errors.ts";
export { openApi } from "./openapi.ts";
