// Embeds both sides of every training pair with the teacher, all-MiniLM-L6-v2.
// Usage: embed-teacher.mjs PAIRS.jsonl OUTPUT.f32  (needs `npm run build`; resumes when stopped and run again)
// Writes 2 × 384 floats per pair: ask, then text. An empty ask stays zero.
import { createReadStream, existsSync, openSync, readFileSync, statSync, truncateSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { wordPiece } from "../dist/embedders/local/wordpiece.js";

const [pairsFile, output] = process.argv.slice(2);
const { InferenceSession, Tensor } = createRequire(import.meta.url)("onnxruntime-node");
const models = new URL("../dist/models/minilm/", import.meta.url).pathname;
const tokenizer = wordPiece(JSON.parse(readFileSync(`${models}tokenizer.json`, "utf8")));
const session = await InferenceSession.create(`${models}model.onnx`, { intraOpNumThreads: 1, interOpNumThreads: 1 });

const ROW_BYTES = 2 * 384 * 4;
const done = existsSync(output) ? Math.floor(statSync(output).size / ROW_BYTES) : 0;
if (done > 0) truncateSync(output, done * ROW_BYTES);
const file = openSync(output, "a");

let index = 0;
for await (const line of createInterface({ input: createReadStream(pairsFile) })) {
  if (index++ < done) continue;
  const { ask, text } = JSON.parse(line);
  const row = new Float32Array(2 * 384);
  for (const [side, words] of [ask, text].entries()) {
    if (words === "") continue;
    // 128 tokens carry nearly all of the meaning here, at half the cost.
    const ids = tokenizer.encode(words, 128);
    const { embedding } = await session.run({ input_ids: new Tensor("int32", Int32Array.from(ids), [1, ids.length]) });
    row.set(embedding.data, side * 384);
  }
  writeSync(file, row);
  if (index % 5000 === 0) console.log(index, new Date().toISOString());
}
