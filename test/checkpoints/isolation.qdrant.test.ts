import { afterAll, expect } from "vitest";
import { type QdrantStandIn, qdrantStandIn } from "../support/qdrant-server.ts";
import { isolationSuite } from "./isolation.ts";

let qdrant: QdrantStandIn;
isolationSuite("SQLite with Qdrant", async (dataDir) => {
  qdrant = await qdrantStandIn("secret");
  return { dataDir, qdrant: { url: qdrant.url, apiKey: "secret" } };
});
// After all attacks: Qdrant did answer searches, each request named its tenant, and each project's points have tenants of their own.
afterAll(async () => {
  await qdrant.close();
  expect(qdrant.violations).toEqual([]);
  expect(qdrant.calls.filter((call) => call.endsWith("/points/query")).length).toBeGreaterThan(3);
  const points = [...qdrant.collections.values()].flatMap((collection) => [...collection.points.values()]);
  const tenants = points.flatMap(({ payload }) => (payload.tenant === undefined ? [] : [String(payload.tenant)]));
  const projects = new Set(tenants.map((tenant) => /^project_[0-9a-f]{16}_/.exec(tenant)?.[0]));
  expect(projects.size).toBeGreaterThan(1);
  expect(projects).not.toContain(undefined);
});
