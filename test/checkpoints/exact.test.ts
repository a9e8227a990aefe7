import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, it } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { testEmbedder } from "../support/embedders.ts";
import { countsExactly, createdAt, findsTheRare, MANY, RARE } from "./exact.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-exact-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a filter that leaves 3 of 100,000 records finds those 3, in semantic and keyword search", { timeout: 1_800_000 }, async () => {
  const dataDir = join(folder, "large");
  const projectPath = "/large";
  const embedder = testEmbedder({ dimension: 8 });
  const storage = sqliteStorage({ dataDir, now: systemClock });
  const { checkpoints } = await storage.create(projectPath);
  const { versionId } = await checkpoints.embeddings.addVersion(embedder);
  const [vector] = await embedder.embed(["step"]);
  const BATCH = 2_000;
  for (let start = 0; start < MANY; start += BATCH)
    await Promise.all(
      Array.from({ length: BATCH }, (_, offset) => {
        const number = start + offset;
        const at = createdAt(number);
        const tags = RARE.has(number) ? ["common", "rare"] : ["common"];
        const record = { id: `id-${number}`, projectPath, summary: `step ${number}`, description: "", context: {}, tags, tokenCount: 1 };
        return checkpoints.put(
          { ...record, createdAt: at, updatedAt: at, createdOrder: at, updatedOrder: at, anchors: [], supersededBy: "", revision: 1 },
          [{ versionId, vector: vector! }],
        );
      }),
    );
  await storage.close();
  await findsTheRare({ dataDir, embedder: [embedder] }, projectPath);
});

it("total is exact and of the same moment as the page while others write", () => countsExactly({ dataDir: join(folder, "busy") }));
