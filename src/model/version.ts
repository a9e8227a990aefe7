import { createRequire } from "node:module";

/** The version of this package, as every surface reports it. The path is valid from src/ and from dist/. */
export const VERSION: string = createRequire(import.meta.url)("../../package.json").version;
