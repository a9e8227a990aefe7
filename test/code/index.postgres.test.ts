import { afterAll, beforeAll, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { systemClock } from "../../src/model/ids.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/me/app";
const embedder = testEmbedder();
let database: TestDatabase;
let servers: Cairn[];

beforeAll(async () => {
  database = await testDatabase();
  servers = await Promise.all([0, 1].map(() => open({ storage: database.url, embedder: [embedder] })));
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  await database.drop();
});

it("lets two servers index one project at once: nothing lost, doubled or left behind, and a renamed folder is not embedded again", async () => {
  const tree = (folder: string, edit = "") =>
    Array.from({ length: 20 }, (_, number) => ({ path: `${folder}/part${number}.txt`, content: `The text of part ${number}.${edit}\n` }));
  const [one, two] = servers as [Cairn, Cairn];
  await Promise.all([
    one.code.indexBatch({ projectPath, files: tree("old") }),
    two.code.indexBatch({ projectPath, files: tree("old", " Edited.") }),
    two.code.indexBatch({ projectPath, files: tree("old").toReversed() }),
  ]);
  await one.code.indexBatch({ projectPath, files: tree("old") });
  const calls = embedder.calls;
  const renames = tree("old").map(({ path }) => ({ from: path, to: path.replace("old/", "new/") }));
  const renamed = await two.code.indexBatch({ projectPath, files: tree("new"), renames });
  expect(new Set(renamed.files.map(({ status }) => status))).toEqual(new Set(["renamed"]));
  await one.code.indexBatch({ projectPath, files: tree("newest") });
  const end = await two.code.finish({ projectPath, manifest: tree("newest").map(({ path }) => path) });
  expect(end.renamed).toHaveLength(20);
  expect(embedder.calls).toBe(calls);

  const stats = await one.code.stats({ projectPath });
  expect(stats).toMatchObject({ files: 20, chunks: 20, renames: 40 });
  expect(stats.embeddings.map(({ vectors }) => vectors)).toEqual([20]);
  expect((await one.code.search({ projectPath, query: "The text of part 7", mode: "keyword" })).hits[0]!.path).toBe("newest/part7.txt");
  const storage = postgresStorage({ url: database.url, now: systemClock });
  expect(await (await storage.find(projectPath))!.code.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
  await storage.close();
});
