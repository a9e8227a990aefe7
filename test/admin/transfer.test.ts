import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Checkpoint } from "../../src/model/checkpoint.ts";
import { checkpointChecksum } from "../../src/model/stored-record.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { plantedSecrets } from "../redaction/planted.ts";
import { transferSuite } from "./transfer.ts";

transferSuite("SQLite", async (dataDir) => ({ dataDir }));
transferSuite("memory", async () => ({ storage: "memory" }));

const folder = mkdtempSync(join(tmpdir(), "cairn-transfer-files-"));
const path = (file: string) => join(folder, file);
let cairn: Cairn;
beforeAll(async () => {
  cairn = await open({ dataDir: path("data"), embedder: { kind: "none" } });
  for (let i = 0; i < 50; i++) await cairn.checkpoints.save({ projectPath: "/p", summary: `Step ${i}`, description: "text ".repeat(200) });
  await cairn.transfer.export({ projectPath: "/p", file: path("good.db") });
});
afterAll(async () => {
  await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

const expectRefusal = async (file: string, code: string, said: RegExp) => {
  const before = statSync(path(file), { throwIfNoEntry: false })?.isFile() ? readFileSync(path(file)) : undefined;
  const error = await cairn.transfer.import({ projectPath: "/q", file: path(file) }).then(
    () => undefined,
    (error) => error,
  );
  expect(error?.message).toMatch(said);
  expect(error?.code).toBe(code);
  expect((await cairn.checkpoints.list({ projectPath: "/q" })).total).toBe(0);
  if (before) expect(readFileSync(path(file)).equals(before)).toBe(true);
};

it("refuses files that are no sound project, reports why, and changes nothing", async () => {
  writeFileSync(path("lines.jsonl"), '{"cairn_export":1}\n');
  await expectRefusal("lines.jsonl", "invalid_input", /not a database file.*checkpoint import/);
  await expectRefusal("nowhere.db", "not_found", /no file or folder/);
  await expectRefusal("data", "invalid_input", /is a folder, not a regular file/);

  copyFileSync(path("good.db"), path("torn.db"));
  truncateSync(path("torn.db"), statSync(path("good.db")).size - 3_000);
  await expectRefusal("torn.db", "invalid_input", /damaged/);
  const bytes = readFileSync(path("good.db"));
  bytes.fill(0x5a, bytes.length / 2, bytes.length / 2 + 8_192);
  writeFileSync(path("scribbled.db"), bytes);
  await expectRefusal("scribbled.db", "invalid_input", /damaged/);

  const other = await openSqlite({ path: path("other.db") });
  await other.write((tx) => tx.exec("CREATE TABLE things (id)"));
  other.close();
  await expectRefusal("other.db", "invalid_input", /not that of a project/);

  copyFileSync(path("good.db"), path("newer.db"));
  const newer = await openSqlite({ path: path("newer.db") });
  await newer.write((tx) => tx.run("INSERT INTO schema_migrations (migration_id, migration_name, checksum) VALUES (999, 'later', 'x')"));
  newer.close();
  await expectRefusal("newer.db", "unavailable", /newer/);

  copyFileSync(path("good.db"), path("trigger.db"));
  const planted = await openSqlite({ path: path("trigger.db") });
  await planted.write((tx) => tx.exec("CREATE TRIGGER sly AFTER INSERT ON schema_migrations BEGIN DELETE FROM checkpoints; END"));
  planted.close();
  await expectRefusal("trigger.db", "unavailable", /"sly", a trigger or view that Cairn did not make/);
});

it("checks every record of a file that someone prepared, and takes out its secrets", async () => {
  copyFileSync(path("good.db"), path("prepared.db"));
  const { text, secret } = plantedSecrets(9).find((one) => !one.secret.includes("\n"))!;
  const { checkpoints: all } = await cairn.checkpoints.list({ projectPath: "/p", limit: 100 });
  const prepared = await openSqlite({ path: path("prepared.db") });
  await prepared.write((tx) => {
    const forge = (summary: string, changes: Partial<Checkpoint>) => {
      const forged = { ...all.find((one) => one.summary === summary)!, ...changes };
      const { id, description } = forged;
      tx.run(
        "UPDATE checkpoints SET summary = ?, description = ?, checksum = ? WHERE id = ?",
        forged.summary,
        description,
        checkpointChecksum(forged),
        id,
      );
    };
    forge("Step 1", { description: text });
    forge("Step 2", { summary: "x".repeat(100_000) });
    tx.run("UPDATE checkpoints SET created_at = 'yesterday' WHERE summary = 'Step 3'");
  });
  prepared.close();
  const { checkpoints } = await cairn.transfer.import({ projectPath: "/prepared", file: path("prepared.db") });
  expect(checkpoints).toMatchObject({ imported: 48, failed: 2 });
  expect(checkpoints.problems.join()).toMatch(/summary: .*created_at is not a time|created_at is not a time.*summary: /);
  const { checkpoints: stored } = await cairn.checkpoints.list({ projectPath: "/prepared", limit: 100 });
  expect(stored.find(({ summary }) => summary === "Step 1")!.description).not.toContain(secret);
});
