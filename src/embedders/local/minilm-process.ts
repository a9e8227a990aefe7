// Runs all-MiniLM-L6-v2 in a process of its own; minilm.ts starts it and speaks to it. Not to be imported.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type EmbedText, loadRuntime, openSession, serveEmbeddings } from "./serve-embeddings.ts";
import { wordPiece } from "./wordpiece.ts";

// The model was trained on texts of up to 256 tokens; more add cost and no accuracy.
const MAX_TOKENS = 256;
const modelDir = process.argv[2] ?? "";

serveEmbeddings(loadModel);

async function loadModel(): Promise<EmbedText> {
  const runtime = loadRuntime();
  const tokenizer = wordPiece(JSON.parse(await readFile(join(modelDir, "tokenizer.json"), "utf8")));
  const session = await openSession(runtime, join(modelDir, "model.onnx"));
  return async (text) => {
    const ids = tokenizer.encode(text, MAX_TOKENS);
    const inputs = { input_ids: new runtime.Tensor("int32", Int32Array.from(ids), [1, ids.length]) };
    const { embedding } = await session.run(inputs, ["embedding"]);
    return embedding!.data;
  };
}
