// Brings the index to the rounds of the changing tree that it reads from stdin, each as a client would: what changed in small
// batches, then the manifest. Says each round back when it is done. Runs from dist/.
import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { renamesAt, treeAt } from "./changing-tree.mjs";

const BATCH = 4;
const { projectPath, ...where } = JSON.parse(process.argv[2]);
const cairn = await open({ ...where, embedder: [hashEmbedder({ model: "test", dimension: 64 })] });
writeSync(1, "ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  await reindex(Number(line));
  writeSync(1, `${line}\n`);
}
await cairn.close();

async function reindex(round) {
  const tree = treeAt(round);
  const candidates = renamesAt(round);
  const known = await cairn.code.hashes({ projectPath, paths: [...tree.keys(), ...candidates.map(({ from }) => from)] });
  const changed = [...tree].filter(([path, content]) => known[path] !== createHash("sha256").update(content).digest("hex"));
  for (let start = 0; start < changed.length; start += BATCH) {
    const files = changed.slice(start, start + BATCH).map(([path, content]) => ({ path, content }));
    const renames = candidates.filter(
      ({ from, to }) => known[from] !== undefined && known[to] === undefined && files.some(({ path }) => path === to),
    );
    const { files: outcomes } = await cairn.code.indexBatch({ projectPath, files, renames });
    const failed = outcomes.filter(({ status }) => status === "failed" || status === "partial");
    if (failed.length > 0) throw new Error(JSON.stringify(failed));
  }
  await cairn.code.finish({ projectPath, manifest: [...tree.keys()] });
}
