import { afterAll, expect } from "vitest";
import { type QdrantStandIn, qdrantStandIn } from "../support/qdrant-server.ts";
import { isolationSuite } from "./isolation.ts";

let qdrant: QdrantStandIn;
isolationSuite("SQLite with Qdrant", async (dataDir) => {
  qdrant = await qdrantStandIn("secret");
  return { dataDir, qdrant: { url: qdrant.url, apiKey: "secret" } };
});
// After all attacks: Qdrant did answer searches, and each project's points stood in collections of its own.
afterAll(async () => {
  await qdrant.close();
  expect(qdrant.violations).toEqual([]);
  expect(qdrant.calls.filter((call) => call.endsWith("/points/query")).length).toBeGreaterThan(3);
  const projects = new Set([...qdrant.collections.keys()].map((name) => /project_[0-9a-f]{16}/.exec(name)?.[0]));
  expect(projects.size).toBeGreaterThan(1);
  expect(projects).not.toContain(undefined);
});
