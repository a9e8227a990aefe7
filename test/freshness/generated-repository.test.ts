import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { measureFreshness } from "../../bench/freshness/measure.ts";
import { sampleSource, testRepository } from "./repository.ts";

it("marks the records of a generated repository as git does, and shows no stale one unmarked", { timeout: 300_000 }, async () => {
  const repository = testRepository();
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-fresh-data-"));
  try {
    const paths = Array.from({ length: 40 }, (_, number) => `src/part${number % 5}/file${number}.ts`);
    for (const [number, path] of paths.entries()) repository.write(path, sampleSource(`N${number}`));
    const from = repository.commit("start");
    for (const [number, path] of paths.entries()) {
      const source = sampleSource(`N${number}`);
      if (number % 5 === 0) repository.write(path, source.replace("value.trim()", "value.trimEnd()"));
      if (number % 5 === 1) repository.git("mv", path, path.replace("file", "renamed"));
      if (number % 5 === 2) repository.remove(path);
      if (number % 10 === 3) repository.write(path, `${source}\nexport const added = ${number};\n`);
      if (number % 4 === 0) repository.commit(`change ${number}`);
    }
    const to = repository.commit("end");
    const options = { clone: repository.root, from, to, records: 80, searches: 20, dataDir, limitMs: 60_000 };
    const measured = await measureFreshness(options);
    expect(measured).toMatchObject({ records: 80, precision: 1, recall: 1, unmarked: 0, mistakes: [] });
    expect(measured.stale).toBeGreaterThan(20);
  } finally {
    repository.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
