// Saves checkpoints in a process of its own until it has saved the given number, and prints the id of each that was acknowledged.
import { open } from "../../dist/index.js";

const [dataDir, projectPath, count] = process.argv.slice(2);
const cairn = await open({ dataDir, embedder: { kind: "none" } });
for (let index = 0; index < Number(count); index++) {
  const { id } = await cairn.checkpoints.save({ projectPath, summary: `Number ${index}` });
  process.stdout.write(`${id}\n`);
}
await cairn.close();
