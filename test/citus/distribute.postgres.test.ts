import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { ensurePgvector } from "../../src/stores/postgres/driver/pgvector.ts";
import { ensureSchema } from "../../src/stores/postgres/driver/schema-version.ts";
import { projectSchema } from "../../src/stores/postgres/projects/project-schema.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { fillProject, unitVector } from "../migrate/full-project.ts";
import { type CitusDatabase, citusDatabase, citusUrl } from "../setup/citus.ts";

/** The statement of the documentation that places existing projects on the workers. */
function documentedStatement(): string {
  const page = readFileSync(join(import.meta.dirname, "../../docs/scaling.md"), "utf8");
  return [...page.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql]) => sql!).find((sql) => sql.includes("citus_schema_distribute"))!;
}

describe.skipIf(!citusUrl)("projects of a PostgreSQL that becomes the coordinator of Citus", () => {
  let database: CitusDatabase;
  beforeAll(async () => {
    database = await citusDatabase();
  });
  afterAll(() => database?.drop());

  it("work before the documented statement places them on the workers, and have the same rows, triggers and counters after it", async () => {
    const projects = ["/before/a", "/before/b"];
    const shared = openPostgres({ url: database.url });
    const typesIn = await ensurePgvector(shared);
    for (const project of projects) await ensureSchema(shared, projectDatabaseName(project), projectSchema, { typesIn });
    const storage = postgresStorage({ database: shared, now: systemClock });
    for (const project of projects) await fillProject(storage, project);
    const nodes = () => Promise.all(projects.map((project) => database.nodeOf(projectDatabaseName(project))));
    expect(await nodes()).toEqual([undefined, undefined]);
    const digest = async () => {
      const schema = projectDatabaseName("/before/a");
      const found: Record<string, unknown> = {};
      for (const { name } of await database.query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = '${schema}' ORDER BY 1`))
        if (name !== "events")
          found[String(name)] = await database.query(`SELECT md5(t::text) AS hash FROM ${schema}.${name} t ORDER BY 1`);
      return found;
    };
    const before = await digest();
    const { checkpoints, knowledge, events } = (await storage.find("/before/a"))!;
    const position = await events.head();

    await database.query(documentedStatement());
    expect(await nodes()).not.toContain(undefined);
    expect(await digest()).toEqual(before);
    await database.query(documentedStatement()); // nothing is left to do

    // Open connections and prepared statements continue.
    const found = await checkpoints.candidates({
      filter: {},
      limit: 5,
      text: "parseConfig",
      semantic: { versionId: 1, vector: unitVector(5) },
    });
    expect(found.semantic[0]?.id).toBe("checkpoint-5");
    await checkpoints.put(sampleCheckpoint("/before/a", { id: "after" }));
    expect(await knowledge.list({ limit: 1 })).toMatchObject({ damaged: [] });
    expect((await events.readAfter(await events.head(), 10)).isExpired).toBe(false);
    const { events: read, isExpired } = await events.readAfter(position, 10);
    if (!isExpired) expect(read).toMatchObject([{ id: "after", action: "saved" }]);
    expect(await storage.checkRecords("/before/a")).toMatchObject({ damaged: [], stale: [] });
    await storage.close();
    await shared.close();
  });
});
