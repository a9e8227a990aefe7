import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { dropDatabasesOfRun, postgresWanted, releaseServer } from "./postgres.ts";

/**
 * Runs once before and after all tests. Worker threads and child processes run from dist/, because Node 20 does not read
 * TypeScript, so dist/ is built first. A type error is reported and does not stop the tests: `npm run types` checks types.
 * PostgreSQL starts when a test first needs it, and stops at the end.
 */
export default function setup(): () => Promise<void> {
  spawnSync(process.execPath, [join(import.meta.dirname, "../../scripts/build.mjs")], { stdio: "inherit" });
  // Test workers inherit these variables.
  process.env.CAIRN_TEST_RUN = randomBytes(4).toString("hex");
  process.env.CAIRN_TEST_HOLDER = String(process.pid);
  if (!postgresWanted)
    console.log("Fast run: the suites that need PostgreSQL, nginx, Caddy or a browser are not run. `npm test` runs them.");
  return async () => {
    await dropDatabasesOfRun();
    await releaseServer();
  };
}
