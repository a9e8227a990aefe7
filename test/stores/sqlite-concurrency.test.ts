import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";

it("reads while writes of the same process are waiting", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-"));
  const cairn = await open({ dataDir, embedder: { kind: "none" } });
  const projectPath = "/p";
  const save = async (index: number) => {
    for (let wait = 0; wait < index % 5; wait++) await turn();
    return cairn.checkpoints.save({ projectPath, summary: `Number ${index}` });
  };
  await Promise.all(Array.from({ length: 100 }, (_, index) => save(index)));
  expect(await cairn.checkpoints.list({ projectPath, limit: 1 })).toMatchObject({ total: 100 });
  await cairn.close();
  rmSync(dataDir, { recursive: true });
});
