// A new process: opens the data, waits until every template has its vector, then runs one semantic search.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [root, dataDir] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(root, "dist", file)).href);
const { open } = await load("index.js");
const { minilmEmbedder } = await load("embedders/local/minilm.js");
const inner = minilmEmbedder();
let embeddingCalls = 0;
const counted = {
  model: inner.model,
  version: inner.version,
  dimension: inner.dimension,
  embed(texts, options) {
    if (options?.purpose !== "query") embeddingCalls += texts.length;
    return inner.embed(texts, options);
  },
  close: () => inner.close(),
};
const cairn = await open({ dataDir, embedder: [counted] });
const { ready } = await cairn.knowledge.readiness();
if (!ready) await cairn.embeddings.verify({ projectPath: "shared", collection: "knowledge" });
const readyMs = performance.now();
const { hits } = await cairn.knowledge.search({ scope: "shared", query: "renew account type 42" });
if (hits.length === 0) throw new Error("The search found nothing.");
const searchedMs = performance.now() - readyMs;
await cairn.close();
process.stdout.write(JSON.stringify({ readyMs, searchedMs, embeddingCalls }));
