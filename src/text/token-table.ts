import { readFileSync } from "node:fs";
import { builtFile } from "../files/built-file.ts";
import { type TokenFilter, tokenFilter } from "./token-filter.ts";

let table: TokenFilter | undefined;

/** Returns the filter of the o200k vocabulary, which the build writes. It takes 95 kB and is read on first use. */
export function tokenTable(): TokenFilter {
  table ??= tokenFilter(readFileSync(builtFile("tokens/o200k.bin")));
  return table;
}
