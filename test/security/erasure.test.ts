import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { sqliteRunStore } from "../../src/stores/sqlite/runs/store.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { encode } from "../../src/stores/sqlite/vectors/collection.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/erased/project";
const embedder = testEmbedder({ dimension: 384 });
let dataDir: string;
let cairn: Cairn;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-erasure-"));
  cairn = await open({ dataDir, stateDir: join(dataDir, "state"), embedder: [embedder] });
});
afterEach(async () => {
  await cairn.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Every file under the data folder that has these bytes, in any case. */
function holding(bytes: string | Buffer): string[] {
  const wanted = Buffer.from(bytes);
  const fold = (data: Buffer) => (typeof bytes === "string" ? Buffer.from(data.toString("latin1").toLowerCase(), "latin1") : data);
  return readdirSync(dataDir, { recursive: true, encoding: "utf8" })
    .map((name) => join(dataDir, name))
    .filter((file) => statSync(file).isFile() && fold(readFileSync(file)).includes(fold(wanted)));
}

/** Words that no other record has, as fragments of many lengths. */
const secretWords = (seed: string) => Array.from({ length: 40 }, (_, index) => `zq${seed}${(index * 7919 + 104729).toString(36)}x`);
const filler = (index: number) => Array.from({ length: 30 }, (_, word) => `word${(index * 31 + word * 17) % 997}`).join(" ");

async function saveFillers(count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await cairn.checkpoints.save({ projectPath, summary: `Filler ${index}`, description: filler(index), tags: [`tag-${index % 5}`] });
}

async function saveSecret(seed: string): Promise<{ id: string; words: readonly string[] }> {
  const words = secretWords(seed);
  const { id } = await cairn.checkpoints.save({
    projectPath,
    summary: `Summary ${words[0]}`,
    description: words.join(" "),
    context: { [`key-${words[1]}`]: `value-${words[2]}` },
    tags: [`tag-${words[3]}`],
  });
  return { id, words };
}

function expectGone(words: readonly string[]): void {
  expect(words.flatMap((word) => holding(word).map((file) => `${word} in ${file.slice(dataDir.length)}`))).toEqual([]);
}

describe("deleting for good", () => {
  it("leaves no word of a purged checkpoint in any file, its full-text index and its log included", async () => {
    await saveFillers(40);
    const { id, words } = await saveSecret("a");
    await saveFillers(20);
    expect(holding(words[0]!)).not.toEqual([]);
    await cairn.checkpoints.purge({ projectPath, id });
    expectGone(words);
  });

  it("leaves no word of a checkpoint that was deleted first and purged later, nor of one whose retention ended", async () => {
    await saveFillers(10);
    const [one, two] = [await saveSecret("h"), await saveSecret("i")];
    for (const { id, words } of [one, two]) {
      await cairn.checkpoints.delete({ projectPath, id });
      expect(holding(words[0]!)).not.toEqual([]); // it can be restored
    }
    await cairn.checkpoints.purge({ projectPath, id: one.id });
    expectGone(one.words);
    expect(holding(two.words[0]!)).not.toEqual([]);
    await cairn.retention.purgeDeleted({ database: projectPath, before: new Date(Date.now() + 1_000).toISOString() });
    expectGone(two.words);
  });

  it("leaves no word of the text that an update replaced", async () => {
    await saveFillers(20);
    const { id, words } = await saveSecret("b");
    await cairn.checkpoints.update({ projectPath, id, summary: "New", description: "New text", context: {}, tags: [] });
    await expect.poll(() => words.filter((word) => holding(word).length > 0)).toEqual([]);
  });

  it("leaves nothing of pruned checkpoints, however many there were and however large", async () => {
    const saved = [];
    for (let round = 0; round < 12; round++) saved.push(await saveSecret(`c${round}-`));
    await saveFillers(30);
    await cairn.checkpoints.prune({ projectPath, keepLast: 30 });
    expect((await cairn.checkpoints.list({ projectPath, limit: 100 })).total).toBe(30);
    for (const { words } of saved) expectGone(words);
  });

  it("leaves neither the vector nor its compressed code", async () => {
    await saveFillers(20);
    const { id } = await saveSecret("d");
    const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
    const database = await openSqlite({ path });
    const { vector } = database.read((tx) => tx.get<{ vector: Uint8Array }>("SELECT vector FROM vectors ORDER BY rowid DESC LIMIT 1"))!;
    database.close();
    const code = encode(new Float32Array(vector.slice().buffer)).code;
    const signs = [Buffer.from(vector), Buffer.from(code.buffer, code.byteOffset, code.byteLength)];
    for (const sign of signs) expect(holding(sign)).not.toEqual([]);
    await saveFillers(520); // moves the code into a pack
    await cairn.checkpoints.purge({ projectPath, id });
    for (const sign of signs) expect(holding(sign)).toEqual([]);
  });

  it("leaves nothing of a purged knowledge record, its copy for readers of SQL included", async () => {
    const words = secretWords("e");
    const record = { projectPath, kind: "faq", category: "general", question: `What is ${words[0]}?`, answer: words.join(" ") } as const;
    const { id } = await cairn.knowledge.save(record);
    expect(holding(words[5]!)).not.toEqual([]);
    await cairn.knowledge.purge({ projectPath, id });
    expectGone(words);
  });

  it("leaves nothing of a deleted run, and nothing of pruned history", async () => {
    const store = sqliteRunStore({ path: join(dataDir, "runs.db") });
    const words = secretWords("f");
    for (const [index, word] of words.slice(0, 20).entries())
      await store.save({ runId: index < 10 ? "one" : "two", nodeId: "node", state: `${word} `.repeat(50) });
    await store.deleteRun("one");
    expectGone(words.slice(0, 10));
    await store.prune({ keepLast: 1 });
    expectGone(words.slice(10, 19));
    await store.close();
  });

  it("leaves nothing of a deleted snapshot or of state that a component removed", async () => {
    const storage = sqliteSystemStorage({ stateDir: join(dataDir, "state") });
    const store = await storage.create("shop");
    const [word, other] = secretWords("g");
    const at = new Date().toISOString();
    const change = { component: "cart", at, messages: [], ports: [] };
    await store.commit({ ...change, version: 0, state: [["key", Buffer.from(word!.repeat(100))]] });
    await store.beginSnapshot({ id: "s1", createdAt: at, mode: "consistent" });
    await store.addSnapshotPart("s1", { component: "cart", checksum: "0", data: Buffer.from(other!.repeat(5_000)) });
    await store.deleteSnapshot("s1");
    expectGone([other!]);
    await store.commit({ ...change, version: 1, state: [["key", null]] });
    await expect.poll(() => holding(word!)).toEqual([]);
    await storage.close();
  });

  it("is not blocked by a reader of another connection, and is completed once the reader ends", async () => {
    const { id, words } = await saveSecret("h");
    const { DatabaseSync } = await loadEngine();
    const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
    const reader = new DatabaseSync(path, { readOnly: true });
    reader.exec("BEGIN; SELECT count(*) FROM checkpoints");
    const statement = reader.prepare("SELECT count(*) AS count FROM checkpoints");
    statement.get();
    await cairn.checkpoints.purge({ projectPath, id });
    expect(await cairn.checkpoints.list({ projectPath })).toMatchObject({ total: 0 });
    reader.exec("COMMIT");
    reader.close();
    await expect.poll(() => words.filter((word) => holding(word).length > 0)).toEqual([]);
  });
});
