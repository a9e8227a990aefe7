import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { dropDatabasesOfRun, postgresWanted, releaseServer } from "./postgres.ts";

/**
 * Runs once around all tests. Worker threads and child processes run from dist/, since Node 20 does not read
 * TypeScript; so dist/ is brought up to date first. A type error is reported but stops nothing: that is for `npm run types`.
 * PostgreSQL starts when a test first asks for it, and stops at the end.
 */
export default function setup(): () => Promise<void> {
  spawnSync(process.execPath, [join(import.meta.dirname, "../../scripts/build.mjs")], { stdio: "inherit" });
  // The workers inherit these.
  process.env.CAIRN_TEST_RUN = randomBytes(4).toString("hex");
  process.env.CAIRN_TEST_HOLDER = String(process.pid);
  if (!postgresWanted) console.log("Fast run: the suites that need PostgreSQL, nginx or Caddy are not run. `npm test` runs them.");
  return async () => {
    await dropDatabasesOfRun();
    await releaseServer();
  };
}
