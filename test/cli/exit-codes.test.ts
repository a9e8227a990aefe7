import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { stage } from "./stage.ts";

const { cairn, project, home, clear } = stage();
afterAll(clear);
const dataDir = join(home, "data");
const stateDir = join(home, "state");
const env = { CAIRN_DATA_DIR: dataDir, CAIRN_STATE_DIR: stateDir };

async function change(path: string, sql: string): Promise<void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path);
  connection.exec(sql);
  connection.close();
}

describe("a command that looks for damage ends with exit code 11 when it finds some, and with 0 otherwise", () => {
  it("system verify, and system restore when it had to skip a snapshot", async () => {
    const library = await open({ dataDir, stateDir, embedder: [] });
    const shop = library.systems.open("shop");
    await shop
      .component("till")
      .port("orders")
      .receive({ id: "a", offset: 0 }, () => {});
    await shop.snapshot();
    const newest = await shop.snapshot();
    await shop.close();
    await library.close();
    expect(await cairn(["system", "verify", "shop"], { env })).toMatchObject({ code: 0 });
    await change(join(stateDir, "checkpoints", "shop.db"), `UPDATE snapshot_parts SET data = x'00' WHERE snapshot_id = '${newest.id}'`);
    for (const level of ["integrity", "checksum", "full"])
      expect(await cairn(["system", "verify", "shop", "--level", level], { env }), level).toMatchObject({
        code: 11,
        stdout: expect.stringContaining("BAD"),
      });
    expect(await cairn(["system", "verify", "shop", "--json"], { env })).toMatchObject({ code: 11 });
    expect(await cairn(["system", "restore", "shop"], { env })).toMatchObject({ code: 11, stdout: expect.stringContaining(newest.id) });
  });

  it("embeddings verify", async () => {
    const library = await open({ dataDir, stateDir, embedder: [hashEmbedder({ model: "hash", dimension: 16 })] });
    await library.checkpoints.save({ projectPath: project, summary: "One" });
    await library.close();
    await change(join(dataDir, "projects", `${projectDatabaseName(project)}.db`), "DELETE FROM vectors");
    // The model is not at hand here, so that the missing vector stays missing.
    expect(await cairn(["embeddings", "verify"], { env })).toMatchObject({ code: 11, stdout: expect.stringContaining("still missing") });
  });

  it("database check", async () => {
    expect(await cairn(["database", "check"], { env })).toMatchObject({ code: 0 });
    writeFileSync(join(dataDir, "projects", `${projectDatabaseName(project)}.db`), "garbage ".repeat(2_000));
    expect(await cairn(["database", "check"], { env })).toMatchObject({ code: 11, stdout: expect.stringContaining("damaged") });
  });
});
