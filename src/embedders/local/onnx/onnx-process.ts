// Runs an ONNX model of the user in a process of its own; onnx.ts starts it and speaks to it. Not to be imported.
import { readFile } from "node:fs/promises";
import { type EmbedText, loadRuntime, openSession, serveEmbeddings } from "../serve-embeddings.ts";
import { changedFile, type FileStamp } from "./fingerprint.ts";
import type { ModelFolder } from "./model-folder.ts";
import { chooseOutput, pool } from "./pooling.ts";
import { modelTokenizer } from "./tokenizer.ts";

/** The argument of the process, as JSON. */
export type OnnxProcessOptions = Pick<
  ModelFolder,
  "modelFile" | "tokenizerFile" | "dimension" | "maxTokens" | "pooling" | "defaultPooling"
> & {
  readonly files: readonly FileStamp[];
  /** The user chose `dimension`; otherwise it is the width of config.json. */
  readonly shortened: boolean;
};

/** The inputs that a text model may have, each with its value at a position. */
const INPUTS: Readonly<Record<string, (id: number, position: number) => number>> = {
  input_ids: (id) => id,
  attention_mask: () => 1,
  token_type_ids: () => 0,
  position_ids: (_, position) => position,
};
/** The runtime does not report the integer type of an input before it is used wrongly. */
const WANTS_INT32 = /expected: \(tensor\(int32\)\)/;

const options = JSON.parse(process.argv[2] ?? "{}") as OnnxProcessOptions;

serveEmbeddings(loadModel);

async function loadModel(): Promise<EmbedText> {
  const { modelFile, tokenizerFile, pooling, files } = options;
  const runtime = loadRuntime();
  const tokenizer = modelTokenizer(JSON.parse(await readFile(tokenizerFile, "utf8")));
  const session = await openSession(runtime, modelFile);
  // The version of the vectors is a hash of the files. Other files under the same version would mix two vector spaces.
  const changed = changedFile(files);
  if (changed !== undefined) throw new Error(`${changed} changed since it was opened. Restart Cairn to use the new file`);
  const output = chooseOutput(session.outputNames, pooling);
  const unknown = session.inputNames.find((name) => !(name in INPUTS));
  if (unknown !== undefined || output === undefined)
    throw new Error(`${modelFile} has the input ${unknown}. Only ${Object.keys(INPUTS).join(", ")} are supported`);

  let type: "int64" | "int32" = "int64";
  const inputsOf = (ids: readonly number[]) =>
    Object.fromEntries(
      session.inputNames.map((name) => {
        const values = ids.map(INPUTS[name]!);
        const data = type === "int64" ? BigInt64Array.from(values, BigInt) : Int32Array.from(values);
        return [name, new runtime.Tensor(type, data, [1, ids.length])];
      }),
    );
  const run = async (ids: readonly number[]) => (await session.run(inputsOf(ids), [output]))[output]!;

  return async (text) => {
    const ids = tokenizer.encode(text, options.maxTokens);
    if (ids.length === 0) return new Float32Array(options.dimension).fill(1 / Math.sqrt(options.dimension));
    const tensor = await run(ids).catch((error: Error) => {
      if (type === "int32" || !WANTS_INT32.test(error.message)) throw error;
      type = "int32";
      return run(ids);
    });
    return vectorOf(tensor, output);
  };
}

function vectorOf({ data, dims }: { readonly data: Float32Array; readonly dims: readonly number[] }, output: string): Float32Array {
  const { pooling, defaultPooling, dimension, shortened } = options;
  const width = dims.at(-1)!;
  const tokens = dims.length === 3 ? dims[1]! : 1;
  if (!(data instanceof Float32Array)) throw new Error(`The output ${output} is not float32. Use an export with float32 outputs`);
  if (dims.length !== 3 && pooling !== undefined) throw new Error(`The output ${output} is pooled already. Remove embedder.pooling`);
  if (width !== dimension && !(shortened && width > dimension))
    throw new Error(`The output ${output} has ${width} values, not ${dimension}. Set embedder.dimensions to ${width}`);
  return pool({ data, tokens, width }, defaultPooling, dimension);
}
