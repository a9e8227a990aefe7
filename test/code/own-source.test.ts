import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";

const root = resolve(import.meta.dirname, "../..");
const projectPath = "/own-source";

it("finds the retry with backoff in Cairn's own source, with the model of a first index", { timeout: 600_000 }, async () => {
  const cairn = await open({ storage: "memory", embedder: { kind: "static" } });
  try {
    // The parts of the source where things are tried again, and enough around them that something else could come first.
    for (const folder of ["src/runs", "src/embedders", "src/http", "src/recall", "src/text", "test/runs"]) {
      const entries = readdirSync(join(root, folder), { withFileTypes: true, recursive: true }).filter((entry) =>
        entry.name.endsWith(".ts"),
      );
      const paths = entries.map(({ parentPath, name }) =>
        join(parentPath, name)
          .slice(root.length + 1)
          .replaceAll("\\", "/"),
      );
      await cairn.code.indexBatch({ projectPath, files: paths.map((path) => ({ path, content: readFileSync(join(root, path), "utf8") })) });
    }
    const { hits, degraded } = await cairn.code.search({ projectPath, query: "where is the retry with backoff" });
    expect(degraded).toEqual([]);
    const [first] = hits;
    expect([
      "src/runs/step.ts retryWait",
      "src/runs/retrying-store.ts retryUnlessDone",
      "src/embedders/remote/call.ts callProvider",
    ]).toContain(`${first!.path} ${first!.name}`);
    const lines = readFileSync(join(root, first!.path), "utf8").split("\n");
    expect(first!.text).toBe(lines.slice(first!.startLine - 1, first!.endLine).join("\n"));
  } finally {
    await cairn.close();
  }
});
