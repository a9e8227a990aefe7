// Opens a project, lets the background pass embed what is missing, reports every call of the model, and ends when all is embedded.
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";

const { storage, dataDir, projectPath, embedder } = JSON.parse(process.argv[2]);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const inner = hashEmbedder(embedder);
const reporting = {
  ...inner,
  async embed(texts, options) {
    if (options?.purpose === "document") say({ texts: texts.length });
    return inner.embed(texts, options);
  },
};
const cairn = await open({ storage, dataDir, embedder: [reporting] });
await cairn.checkpoints.search({ projectPath, query: "anything" });
for (;;) {
  const [version] = await cairn.embeddings.list({ projectPath, collection: "checkpoints" });
  if (version.parts === version.partVectors && version.records === version.vectors) break;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
say({ complete: true });
await cairn.close();
