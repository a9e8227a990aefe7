// Uses up all descriptors of this process, saves, gives the descriptors back and saves again. Prints the answers as JSON.
import { closeSync, openSync } from "node:fs";
import { open } from "../../dist/index.js";

const cairn = await open({ dataDir: process.argv[2], embedder: { kind: "none" } });
await cairn.checkpoints.save({ projectPath: "/warm", summary: "Loads all modules" });
const taken = [];
try {
  for (;;) taken.push(openSync("/dev/null", "r"));
} catch (error) {
  if (error.code !== "EMFILE") throw error;
}
const refusals = [];
for (const spare of [0, 1, 2]) {
  // With one or two descriptors left SQLite opens the database, but not its log or the index of the log.
  for (let freed = 0; freed < spare; freed++) closeSync(taken.pop());
  try {
    await cairn.checkpoints.save({ projectPath: `/used-up/${spare}`, summary: "Saved" });
  } catch ({ code, message }) {
    refusals.push({ spare, code, message });
  }
}
for (const descriptor of taken) closeSync(descriptor);
await cairn.checkpoints.save({ projectPath: "/used-up/1", summary: "Saved after all" });
const { checkpoints } = await cairn.checkpoints.list({ projectPath: "/used-up/1" });
await cairn.close();
console.log(JSON.stringify({ refusals, after: checkpoints.at(0)?.summary }));
