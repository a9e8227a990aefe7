import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openRunStore } from "../../src/runs.ts";
import { fileRunStore } from "../../src/stores/file/runs.ts";
import { memoryRunStore } from "../../src/stores/memory/runs.ts";
import { sqliteRunStore } from "../../src/stores/sqlite/runs/store.ts";
import { runStoreContract } from "../../src/testing/run-store-contract.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-runs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

describe("memory", () => {
  for (const { name, run } of runStoreContract({ clock: "given", open: (now) => memoryRunStore({ now }) })) it(name, run);
});

describe("SQLite", () => {
  const open = (now: () => string) => sqliteRunStore({ path: join(folder, `${files++}.db`), now });
  for (const { name, run } of runStoreContract({ clock: "given", open })) it(name, run);
});

describe("files", () => {
  const open = (now: () => string) => fileRunStore({ folder: join(folder, `${files++}`), now });
  for (const { name, run } of runStoreContract({ clock: "given", open })) it(name, run);
});

it.each([
  ["file", "folder"],
  ["sqlite", "path"],
  ["postgres", "url"],
])("asks a store of the kind %s for its %s", async (storage, place) => {
  const wrong = { storage } as Parameters<typeof openRunStore>[0];
  await expect(openRunStore(wrong)).rejects.toMatchObject({ code: "invalid_input", message: expect.stringContaining(`needs "${place}"`) });
});
