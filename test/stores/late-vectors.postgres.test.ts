import { expect, it } from "vitest";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { testDatabase } from "../setup/postgres.ts";

const now = () => "2026-01-02T03:04:05.678Z";

it("leaves no vector of a record that was deleted while its vector was filled in", async () => {
  const database = await testDatabase();
  const storage = postgresStorage({ url: database.url, now });
  try {
    const { checkpoints } = await storage.create("/late");
    const { embeddings } = checkpoints;
    const { versionId } = await embeddings.addVersion({ model: "m", version: "1", dimension: 2 });
    for (let round = 0; round < 100; round++) {
      const id = `r${round}`;
      const text = { projectPath: "/late", summary: id, description: "", context: {}, tags: [], tokenCount: 1 };
      await checkpoints.put({
        id,
        ...text,
        createdAt: now(),
        updatedAt: now(),
        createdOrder: now(),
        updatedOrder: now(),
        anchors: [],
        supersededBy: "",
        revision: 1,
      });
      const filled = embeddings.putVectors(versionId, [{ id, revision: 1, piece: 0, text: id, vector: Float32Array.of(1, 0) }]);
      await Promise.all([filled, checkpoints.purge([id])]);
    }
    expect(await embeddings.counts(versionId)).toEqual({ records: 0, vectors: 0, parts: 0, partVectors: 0 });
  } finally {
    await storage.close();
    await database.drop();
  }
});
