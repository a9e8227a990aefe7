import { resolve } from "node:path";
import { LIMITS } from "../model/limits.ts";
import { unstorable } from "../text/untrusted.ts";
import { usage } from "./argv.ts";
import type { Host } from "./host.ts";

/** Returns the absolute path of a file from the command line. */
export function filePath({ cwd }: Host, given: unknown): string {
  const path = String(given);
  if (path === "" || path.length > LIMITS.projectPathChars || unstorable(path)) throw usage("<file> is not a valid path.");
  return resolve(cwd, path);
}
