// A process that deletes, restores and purges checkpoints, and prints one JSON line for each acknowledged change: node deleter.mjs <folder> <project> <seed>
// Runs from dist/.
import { writeSync } from "node:fs";
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";

const [dataDir, projectPath, seed] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const cairn = await open({ dataDir, embedder: [hashEmbedder({ model: "test", dimension: 16 })] });
for (let turn = 0; ; turn++) {
  const { id } = await cairn.checkpoints.save({ projectPath, summary: `Change ${turn} of ${seed}` });
  say({ id, state: "visible" });
  await cairn.checkpoints.delete({ projectPath, id });
  say({ id, state: "deleted" });
  if (turn % 3 === 1) {
    await cairn.checkpoints.restore({ projectPath, id });
    say({ id, state: "visible" });
  }
  if (turn % 3 === 2) {
    await cairn.checkpoints.purge({ projectPath, id });
    say({ id, state: "purged" });
  }
}
