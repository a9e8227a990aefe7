import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";

it("lists the checkpoints of a project whose code index cannot be read", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-damaged-index-"));
  const cairn = await open({ storage: "sqlite", dataDir, stateDir: join(dataDir, "state"), embedder: { kind: "none" } });
  try {
    const projectPath = "/home/me/project";
    await cairn.checkpoints.save({ projectPath, summary: "Still here" });
    writeFileSync(join(dataDir, "projects", `${projectDatabaseName(projectPath)}.code.db`), "not a database".repeat(500));
    const { checkpoints } = await cairn.checkpoints.listAll({ mayTouch: () => true });
    expect(checkpoints).toMatchObject([{ summary: "Still here" }]);
    expect((await cairn.checkpoints.daysAll({ mayTouch: () => true })).days).toMatchObject([{ count: 1 }]);
  } finally {
    await cairn.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
