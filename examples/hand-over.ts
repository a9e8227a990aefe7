/** One session saves a checkpoint; the next session finds it and resumes. Run it with: npm run example -- hand-over */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "../src/index.ts"; // in your own project: from "cairn-memory"

const dataDir = mkdtempSync(join(tmpdir(), "cairn-example-"));
const projectPath = "/home/me/app";

// The first session ends or crashes: its checkpoint is durable.
const first = await open({ dataDir });
await first.checkpoints.save({
  projectPath,
  summary: "Parser done, lexer next",
  description: "All parser tests pass. The lexer still fails on nested quotes, see test/lexer.test.ts.",
  context: { branch: "lexer" },
  tags: ["parser"],
});
await first.close();

// The next session starts with the newest checkpoint.
const second = await open({ dataDir });
const { checkpoints } = await second.checkpoints.list({ projectPath, limit: 1 });
const last = checkpoints[0];
assert.equal(last?.context.branch, "lexer");
console.log(`Resuming from: ${last.summary} (branch ${last.context.branch})`);
await second.close();

rmSync(dataDir, { recursive: true });
