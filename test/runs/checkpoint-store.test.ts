import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { type CheckpointStore, FileStore, MemoryStore, SQLiteStore } from "../../src/runs.ts";
import { removeFolder } from "../support/processes.ts";
import { checkpointStoreSuite } from "./checkpoint-store-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-checkpoint-store-"));
afterAll(() => removeFolder(folder));

const STORES: readonly [string, () => CheckpointStore & Pick<MemoryStore, "runs">][] = [
  ["MemoryStore", () => new MemoryStore()],
  ["FileStore", () => new FileStore(join(folder, "files"))],
  ["SQLiteStore", () => new SQLiteStore(join(folder, "runs.db"))],
];

describe.each(STORES)("%s", (_, open) => checkpointStoreSuite(open));
