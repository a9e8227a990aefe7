/** Cairn on a storage of your own, here journals of one project each. Run it with: npm run example -- own-store */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../src/index.ts"; // in your own project: from "cairn-memory"
import { storageContract } from "../src/testing/index.ts"; // from "cairn-memory/testing"
import { journalStorage } from "./own-store/journal-storage.ts";

const dataDir = mkdtempSync(join(tmpdir(), "cairn-example-"));
const projectPath = "/home/me/app";

// The contract states what Cairn relies on. Run it in your own test runner; here a loop is enough.
const checked = await journalStorage(join(dataDir, "contract"));
const cases = storageContract({ storage: () => checked, openAgain: "not possible" });
for (const { run } of cases) await run();
await checked.close();
console.log(`${cases.length} contract cases pass`);

// A checkpoint survives the process that saved it: the next one replays the journal.
for (const run of ["first", "second"]) {
  const storage = await journalStorage(join(dataDir, "projects"));
  const cairn = await open({ storage, dataDir });
  if (run === "first") await cairn.checkpoints.save({ projectPath, summary: "Parser done, lexer next", tags: ["parser"] });
  const { checkpoints } = await cairn.checkpoints.list({ projectPath });
  assert.equal(checkpoints[0]?.summary, "Parser done, lexer next");
  console.log(`${run} process: ${checkpoints[0].summary}`);
  await cairn.close(); // leaves the storage open: it is the caller's
  await storage.close();
}

rmSync(dataDir, { recursive: true });
