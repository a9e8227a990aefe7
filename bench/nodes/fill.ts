import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { staticEmbedder } from "../../src/embedders/local/static.ts";
import { systemClock } from "../../src/model/ids.ts";
import { forEachParallel } from "../../src/scheduling/for-each-parallel.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { root } from "../frame.ts";
import { packageSentences } from "../vectors/texts.ts";

/** Records that are embedded together. */
const BATCH = 500;
const CONNECTIONS = 4;
/** Different sentences; further records repeat them with a number. */
const SENTENCES = 20_000;
let sentences: readonly string[] | undefined;

/** Stores records `from` … `to` − 1 with the vectors of the static model. */
export async function fillProject(url: string, projectPath: string, { from, to }: { from: number; to: number }): Promise<void> {
  sentences ??= packageSentences(join(root, "node_modules"), SENTENCES);
  const storage = postgresStorage({ url, now: systemClock, poolMax: CONNECTIONS });
  const embedder = staticEmbedder();
  try {
    const { checkpoints } = await storage.create(projectPath);
    const { versionId } = await checkpoints.embeddings.addVersion(embedder);
    for (let start = from; start < to; start += BATCH) {
      const texts = Array.from({ length: Math.min(BATCH, to - start) }, (_, offset) => {
        const position = start + offset;
        return `${sentences![position % sentences!.length]} ${position}`;
      });
      const vectors = await embedder.embed(texts);
      await forEachParallel([...texts.entries()], { concurrency: CONNECTIONS }, async ([offset, summary]) => {
        const at = new Date(Date.UTC(2026, 0, 1) + (start + offset) * 1_000).toISOString();
        const times = { createdAt: at, updatedAt: at, createdOrder: at, updatedOrder: at };
        const record = { id: randomUUID(), projectPath, summary, description: "", context: {}, tags: [], tokenCount: 20 };
        await checkpoints.put({ ...record, ...times, anchors: [], supersededBy: "", revision: 1 }, [
          { versionId, vector: vectors[offset]! },
        ]);
      });
    }
  } finally {
    await embedder.close();
    await storage.close();
  }
}
