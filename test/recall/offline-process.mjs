// Saves and searches with the model that an installation has by itself. Started with test/support/no-network.cjs.
import { connect } from "node:net";
import { open } from "../../dist/index.js";

const { dataDir, texts, query } = JSON.parse(process.argv[2]);
const notices = [];
const cairn = await open({ dataDir, onNotice: (message) => notices.push(message) });
const projectPath = "/srv/offline";
for (const summary of texts) {
  const { embedded } = await cairn.checkpoints.save({ projectPath, summary });
  if (!embedded) throw new Error(`No vector for: ${summary}`);
}
const { hits, model, degraded } = await cairn.checkpoints.search({ projectPath, query, topK: texts.length });
await cairn.close();

let refused = false;
try {
  connect(80, "192.0.2.1");
} catch {
  refused = true; // so the block was in force
}
console.log(
  JSON.stringify({ model, degraded, notices, refused, found: hits.map(({ record, score }) => ({ summary: record.summary, score })) }),
);
