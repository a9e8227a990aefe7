import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A token for servers that a test runs without a data folder. */
export const TEST_TOKEN = "cairn_local_0000000000000000000000000000000000000000000";

export const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

/** The header that a client of `cairn serve` sends as the local user. */
export function localAuthorization(dataDir: string): { readonly authorization: string } {
  return bearer(readFileSync(join(dataDir, "token"), "utf8").trim());
}
