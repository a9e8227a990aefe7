// A process that indexes the same files repeatedly, each round with other content, and writes the round to stdout once it was
// acknowledged. Runs from dist/.
//   node code-writer.mjs <storage> <data folder> <project> <first round> <number of files>
import { writeSync } from "node:fs";
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";

const [storage, dataDir, projectPath, first, count] = process.argv.slice(2);
const cairn = await open({ storage, dataDir, embedder: [hashEmbedder({ model: "test", dimension: 64 })] });
writeSync(1, "ready\n");
for (let round = Number(first); ; round++) {
  const files = Array.from({ length: Number(count) }, (_, index) => ({
    path: `src/file${index}.py`,
    // The number of chunks changes too.
    content: Array.from(
      { length: 1 + (round % 3) },
      (_, part) => `def f${part}_round${round}():\n    return shared(${round}, ${index})\n${"    # filler\n".repeat(150)}`,
    ).join("\n"),
  }));
  // It has more chunks than one step writes.
  const part = (_, index) => `def g${index}_round${round}():\n    return ${index}\n${"    # filler\n".repeat(150)}`;
  files.push({ path: "src/long.py", content: Array.from({ length: 60 }, part).join("\n") });
  await cairn.code.indexBatch({ projectPath, files });
  writeSync(1, `${round}\n`);
}
