// A process of its own that gives feedback N times, alternately positive and negative.
import { open } from "../../dist/index.js";

const [storage, dataDir, count] = process.argv.slice(2);
const cairn = await open({ storage, dataDir, embedder: { kind: "none" } });
const calls = Array.from({ length: Number(count) }, (_, index) => index);
// A few at a time, as the calls of several sessions would come.
await Promise.all(
  [0, 1, 2, 3].map(async (lane) => {
    for (const index of calls)
      if (index % 4 === lane) await cairn.knowledge.feedback({ scope: "shared", id: "one", success: index % 2 === 0 });
  }),
);
await cairn.close();
