import { readFileSync } from "node:fs";

/** The version of this package, as every surface reports it. The path is valid from src/ and from dist/. */
export const VERSION: string = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
