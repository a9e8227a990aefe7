// Upgrades a project's checkpoints to another model and reports every stored batch, until it is done or killed.
import { open } from "../../dist/index.js";
import { hashEmbedder } from "../support/hash-embedder.mjs";

const { storage, dataDir, projectPath, embedder, to } = JSON.parse(process.argv[2]);
const cairn = await open({ storage, dataDir, embedder: Array.isArray(embedder) ? embedder.map(hashEmbedder) : embedder });
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const result = await cairn.embeddings.upgrade(
  { projectPath, collection: "checkpoints", model: to },
  { progress: (done, total) => say({ done, total }) },
);
say({ result });
await cairn.close();
