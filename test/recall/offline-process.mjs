// Saves and searches with the model that an installation has by itself. Started with test/support/no-network.cjs.
import { connect } from "node:net";
import { open } from "../../dist/index.js";

const { dataDir, texts, query } = JSON.parse(process.argv[2]);
const notices = [];
const cairn = await open({ dataDir, onNotice: (message) => notices.push(message) });
const projectPath = "/srv/offline";
for (const summary of texts) await cairn.checkpoints.save({ projectPath, summary });
// A save stores its record without a vector when the model loads slowly. verify waits for the model and adds such vectors.
const { missing } = await cairn.embeddings.verify({ projectPath, collection: "checkpoints" });
const { hits, model, degraded } = await cairn.checkpoints.search({ projectPath, query, topK: texts.length });
await cairn.close();

let refused = false;
try {
  connect(80, "192.0.2.1");
} catch {
  refused = true; // so the block was in force
}
console.log(
  JSON.stringify({
    model,
    degraded,
    missing,
    notices,
    refused,
    found: hits.map(({ record, score }) => ({ summary: record.summary, score })),
  }),
);
