import { spawnSync } from "node:child_process";
import { join } from "node:path";

/**
 * Runs once before all tests. Worker threads and child processes run from dist/, since Node 20 does not read
 * TypeScript; so dist/ is brought up to date first. A type error is reported but stops nothing: that is for `npm run types`.
 */
export default async function setup(): Promise<void> {
  spawnSync(process.execPath, [join(import.meta.dirname, "../../scripts/build.mjs")], { stdio: "inherit" });
}
