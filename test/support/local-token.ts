import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The token of test servers that have no data folder. */
export const TEST_TOKEN = "cairn_local_0000000000000000000000000000000000000000000";

export const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

/** Returns the header with which a client of `cairn serve` acts as the local user. */
export function localAuthorization(dataDir: string): { readonly authorization: string } {
  return bearer(readFileSync(join(dataDir, "token"), "utf8").trim());
}
