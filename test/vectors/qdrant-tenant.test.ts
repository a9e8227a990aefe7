import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { qdrantHealth } from "../../src/vectors/qdrant/health.ts";
import { failure } from "../../src/vectors/qdrant/request.ts";
import { collectionName, keyOf, markerId, pointId, tenantBase, tenantName } from "../../src/vectors/qdrant/tenant.ts";

describe("the names of tenants and points", () => {
  const key = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

  it("returns the key of a point id, and orders ids of a tenant by key", () => {
    fc.assert(
      fc.property(fc.string(), key, key, (tenant, a, b) => {
        const [first, second] = [pointId(tenant, a), pointId(tenant, b)];
        expect(first).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        expect(keyOf(first)).toBe(a);
        expect(Math.sign(a - b)).toBe(first < second ? -1 : first > second ? 1 : 0);
        expect(markerId(tenant) > first).toBe(true);
      }),
    );
  });

  it("gives two tenants no common point id", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), key, key, (a, b, x, y) => {
        fc.pre(a !== b);
        expect(pointId(a, x).slice(0, 18)).not.toBe(pointId(b, y).slice(0, 18));
      }),
    );
  });

  it("gives each project, database, collection and version a tenant of its own", () => {
    const tenant = (project: string, database: string, collection: string, version: number) =>
      tenantName(tenantBase(project, database, collection), version);
    const tenants = ["/a", "/b"].flatMap((project) =>
      ["1a", "2b"].flatMap((database) =>
        ["checkpoints", "code"].flatMap((collection) => [1, 11].map((version) => tenant(project, database, collection, version))),
      ),
    );
    expect(new Set(tenants).size).toBe(16);
  });

  it("names the collection after the model, with characters that every server accepts", () => {
    const space = { model: "BAAI/bge-small-en-v1.5", version: "1", dimension: 384 };
    expect(collectionName(space)).toMatch(/^cairn_baai-bge-small-en-v1\.5_[0-9a-f]{16}$/);
    for (const other of [
      { ...space, version: "2" },
      { ...space, dimension: 512 },
      { ...space, model: "BAAI.bge-small-en-v1.5" },
    ])
      expect(collectionName(other)).not.toBe(collectionName(space));
    expect(collectionName({ ...space, model: `../${"x".repeat(500)}` }).length).toBeLessThan(80);
  });
});

describe("the pauses after a failure", () => {
  it("pauses every tenant if the server is down, and one tenant otherwise", () => {
    let now = 1_000;
    const health = qdrantHealth(500, () => now);
    health.failed("a", failure("tenant", "a mistake."));
    expect([health.reason("a"), health.reason("b"), health.serverPauseMs()]).toEqual(["a mistake", undefined, 0]);
    health.failed("b", failure("server", "away."));
    expect([health.reason("a"), health.reason("b"), health.serverPauseMs()]).toEqual(["away", "away", 500]);
    health.succeeded("b");
    expect([health.reason("a"), health.reason("b"), health.serverPauseMs()]).toEqual(["a mistake", undefined, 0]);
    now += 500;
    expect(health.reason("a")).toBeUndefined();
  });

  it("pauses nothing because one caller had too little time", () => {
    const health = qdrantHealth(500);
    health.failed("a", failure("call", "no answer within 3 ms."));
    expect([health.reason("a"), health.serverPauseMs()]).toEqual([undefined, 0]);
  });

  it("treats a failure of the database as one of its project", () => {
    const health = qdrantHealth(500);
    health.failed("a", new Error("the database is gone"));
    expect([health.reason("a"), health.reason("b")]).toEqual(["the database is gone", undefined]);
  });
});
