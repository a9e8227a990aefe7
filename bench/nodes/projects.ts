import { systemClock } from "../../src/model/ids.ts";
import { open } from "../../src/open/open.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type Bench, median } from "../frame.ts";
import { createDatabase } from "./database.ts";

/** Projects that are created at the same time. */
const AT_ONCE = 4;

/** Measures calls by the number of projects, and what one project costs on disk. */
export async function measureProjects(bench: Bench, sizes: readonly number[]): Promise<void> {
  const database = await createDatabase(bench);
  const cairn = await open({ storage: database.url, dataDir: bench.scratch(), embedder: { kind: "none" } });
  bench.defer(() => cairn.close());
  await measureEmpty(bench, database.url, database.query);
  let created = 0;
  for (const size of sizes) {
    bench.log(`projects: ${size}`);
    const start = performance.now();
    const before = created;
    const create = async () => {
      while (created < size) {
        const n = created++;
        await cairn.checkpoints.save({ projectPath: `/bench/${n}`, summary: `Parser of project ${n} done, lexer next` });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, create));
    bench.record({ name: `create_ms_per_project_${size}`, value: (performance.now() - start) / (size - before), unit: "ms" });
    const projectOf = (round: number) => `/bench/${(round * 7) % size}`;
    const own = await bench.times(
      {
        save: (round) => cairn.checkpoints.save({ projectPath: projectOf(round), summary: `Step ${round} done` }),
        search: (round) => cairn.checkpoints.search({ projectPath: projectOf(round), query: "parser" }),
      },
      { rounds: 60, warmUp: 10 },
    );
    for (const [name, us] of Object.entries(own))
      bench.record({ name: `${name}_ms_projects_${size}`, value: median(us) / 1_000, unit: "ms" });
    let found = 0;
    const all = await bench.times(
      {
        search_all: async () => {
          const answer = await cairn.checkpoints.searchAll({ query: "parser", topK: 10, mayTouch: () => true });
          found = answer.hits.length;
          if (answer.partial) throw new Error(`A search of all ${size} projects was partial.`);
        },
        project_list: () => cairn.stats.projects({ limit: 100, mayTouch: () => true }),
      },
      { rounds: 3, warmUp: 1 },
    );
    if (found !== Math.min(10, size)) throw new Error(`A search of all ${size} projects found ${found} records.`);
    for (const [name, us] of Object.entries(all)) bench.record({ name: `${name}_${size}_ms`, value: median(us) / 1_000, unit: "ms" });
  }
}

type Query = <Row extends Record<string, unknown>>(sql: string) => Promise<Row[]>;

/** Measures the bytes and the rows of pg_class that a project takes before anything is stored in it. */
async function measureEmpty(bench: Bench, url: string, query: Query): Promise<void> {
  const storage = postgresStorage({ url, now: systemClock, poolMax: 1 });
  await storage.create("/empty/first"); // also creates what all projects share
  const relations = async () => (await query<{ count: number }>("SELECT count(*)::int AS count FROM pg_class"))[0]!.count;
  const before = await relations();
  await storage.create("/empty/second");
  bench.record({ name: "empty_project_relations", value: (await relations()) - before, unit: "" });
  bench.record({ name: "empty_project_bytes", value: (await storage.sizeBytes("/empty/second"))!, unit: "bytes" });
  for (const project of ["/empty/first", "/empty/second"]) await storage.remove(project);
  await storage.close();
}
