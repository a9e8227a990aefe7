import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { mapInSlices } from "../../src/scheduling/map-in-slices.ts";
import { removeFolder } from "../support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-imports-"));
let cairn: Cairn;
beforeAll(async () => {
  cairn = await open({ dataDir: folder, stateDir: folder, embedder: { kind: "none" } });
});
afterAll(async () => {
  await cairn.close();
  await removeFolder(folder);
});

const project = { projectPath: "/p", source: "faq.json" };
const manyRecords = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: `faq-${index}`,
    kind: "faq" as const,
    category: "",
    subcategory: "",
    question: `How many of ${index} are there?`,
    answer: "Some words about it. ".repeat(10),
  }));

describe("an import as large as a write key may send", () => {
  // That it leaves the event loop to other callers is measured by `npm run test:attack`.
  it("is stored whole", async () => {
    expect(await cairn.knowledge.import({ ...project, records: manyRecords(2_000) })).toMatchObject({ added: 2_000, changed: 0 });
    const found = await cairn.knowledge.search({ projectPath: "/p", query: "how many of 1999", mode: "keyword" });
    expect(found.hits[0]?.record.id).toBe("faq-1999");
  });

  it("changes, removes and reports like a small one", async () => {
    const records = manyRecords(1_500).map((record) => ({ ...record, answer: "New." }));
    expect(await cairn.knowledge.import({ ...project, records })).toMatchObject({ added: 0, changed: 1_500, removed: 500, unchanged: 0 });
    expect((await cairn.knowledge.get({ projectPath: "/p", id: "faq-3" })).answer).toBe("New.");
  });

  it("is refused whole when one of its records belongs to somebody else", async () => {
    const records = manyRecords(200).map((record) => ({ ...record, id: `other-${record.id}` }));
    await cairn.knowledge.save({ projectPath: "/p", id: "other-faq-0", question: "By hand?", answer: "Yes." });
    await expect(cairn.knowledge.import({ ...project, source: "other.json", records })).rejects.toMatchObject({ code: "conflict" });
    await expect(cairn.knowledge.get({ projectPath: "/p", id: "other-faq-1" })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("mapInSlices", () => {
  it("keeps the order and stops when its signal is aborted", async () => {
    expect(await mapInSlices([1, 2, 3], (one, index) => one * 10 + index)).toEqual([10, 21, 32]);
    const controller = new AbortController();
    const spin = () => {
      const until = performance.now() + 3;
      while (performance.now() < until);
      controller.abort();
    };
    await expect(mapInSlices(Array.from({ length: 1_000 }), spin, controller.signal)).rejects.toThrow();
  });
});
