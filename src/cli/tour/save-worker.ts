// Saves checkpoints until it is killed, and prints the id of each one that is acknowledged. The tour starts and kills it.
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "../../index.ts";

const [dataDir, projectPath] = process.argv.slice(2) as [string, string];
const cairn = await open({ dataDir, embedder: { kind: "none" } });
for (let count = 1; ; count++) {
  const { id } = await cairn.checkpoints.save({ projectPath, summary: `Migrated customer batch ${count}`, tags: ["migration"] });
  process.stdout.write(`${id}\n`);
  await sleep(5);
}
