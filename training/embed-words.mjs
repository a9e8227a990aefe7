// Embeds every token of the student's vocabulary on its own with the teacher: the table's starting point.
// Usage: embed-words.mjs WORDS.json OUTPUT.f32  (needs `npm run build`)
import { openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { wordPiece } from "../dist/embedders/local/wordpiece.js";

const [wordsFile, output] = process.argv.slice(2);
const { InferenceSession, Tensor } = createRequire(import.meta.url)("onnxruntime-node");
const models = new URL("../dist/models/minilm/", import.meta.url).pathname;
const tokenizerFile = JSON.parse(readFileSync(`${models}tokenizer.json`, "utf8"));
const tokenizer = wordPiece(tokenizerFile);
const session = await InferenceSession.create(`${models}model.onnx`, { intraOpNumThreads: 1, interOpNumThreads: 1 });

const single = Object.values(tokenizerFile.model.vocab)
  .sort((a, b) => a - b)
  .map((id) => [101, id, 102]);
const words = JSON.parse(readFileSync(wordsFile, "utf8")).map((word) => tokenizer.encode(word, 32));
const file = openSync(output, "w");
for (const ids of [...single, ...words]) {
  const { embedding } = await session.run({ input_ids: new Tensor("int32", Int32Array.from(ids), [1, ids.length]) });
  writeSync(file, Buffer.from(embedding.data.buffer, embedding.data.byteOffset, 384 * 4));
}
