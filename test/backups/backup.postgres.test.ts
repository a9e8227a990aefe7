import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

describe("on PostgreSQL", () => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await testDatabase();
  });
  afterAll(() => place.drop());

  it("backup and restore are refused with the way that PostgreSQL has", async () => {
    const cairn = await open({ storage: place.url, embedder: [] });
    for (const call of [
      cairn.backups.create("all"),
      cairn.backups.list(),
      cairn.backups.restore({ which: "all" }),
      cairn.backups.verify({}),
    ])
      await expect(call).rejects.toMatchObject({ code: "conflict", message: expect.stringMatching(/pg_dump.*pg_restore/) });
    await cairn.close();
  });

  it("the doctor looks at every schema, and no trigger is left to fire", async () => {
    const cairn = await open({ storage: place.url, embedder: [], doctor: { sizeMaxBytes: 1e12 } });
    await cairn.checkpoints.save({ projectPath: "/home/me/app", summary: "One" });
    const report = await cairn.doctor.examine();
    expect(report).toMatchObject({ healthy: true, findings: [], systems: [] });
    expect(report.versions.database).toMatch(/^PostgreSQL \d+.*pgvector/);
    expect(report.databases).toEqual(expect.arrayContaining([expect.objectContaining({ kind: "project", bytes: expect.any(Number) })]));
    await cairn.close();
  });

  it("the doctor reports when the server is away, instead of failing", async () => {
    const cairn = await open({ storage: "postgres://nobody@127.0.0.1:1/none", embedder: [] });
    expect(await cairn.doctor.examine()).toMatchObject({ healthy: false, findings: [{ check: "storage", severity: "problem" }] });
    await cairn.close();
  });
});
