// A process that saves checkpoints and writes each id to stdout once the save was acknowledged. Runs from dist/.
//   node saver.mjs <storage> <data folder> <project> <count> <concurrency>
// It starts when it reads from stdin. It ends after <count> saves, or when its stdin ends.
import { writeSync } from "node:fs";
import { open } from "../../dist/index.js";

const [storage, dataDir, projectPath, count, atOnce] = process.argv.slice(2);
const cairn = await open({ storage, dataDir, embedder: [] });
writeSync(1, "ready\n");
let left = Number(count);
process.stdin.on("end", () => {
  left = 0;
});
await new Promise((resolve) => process.stdin.on("data", resolve)); // all processes start at the same time

async function saveInTurn() {
  while (left-- > 0) {
    const { id } = await cairn.checkpoints.save({
      projectPath,
      summary: `Step ${left} of ${process.pid}`,
      tags: ["fault", `${process.pid}`],
    });
    writeSync(1, `${id}\n`);
  }
}
await Promise.all(Array.from({ length: Number(atOnce) }, saveInTurn));
await cairn.close();
process.stdin.destroy();
