import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { SystemStorageOptions } from "../../src/systems.ts";

/** The long form runs in `npm run test:soak`. */
export const soak = process.env.CAIRN_SOAK === "1";

/** Creates fresh folders for SQLite systems, and removes them when the tests of the file are done. */
export function sqlitePlaces(): () => SystemStorageOptions & { storage: "sqlite"; stateDir: string } {
  const folder = mkdtempSync(join(tmpdir(), "cairn-systems-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let count = 0;
  return () => ({ storage: "sqlite", stateDir: join(folder, `${count++}`) });
}
