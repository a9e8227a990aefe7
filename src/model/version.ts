import { createRequire } from "node:module";

/** The version of this package, as every edge tells it. The path holds from src/ and from dist/ alike. */
export const VERSION: string = createRequire(import.meta.url)("../../package.json").version;
