// Writes all-MiniLM-L6-v2 (BERT, 6 layers, 12 heads, 384 wide) as ONNX, keeping the published uint8 weights as they are.

import { FLOAT, INT32, INT64, onnxGraph, UINT8 } from "./onnx-writer.mjs";

const LAYERS = 6;
const HEADS = 12;
const WIDTH = 384;
const LAYER_NORM_EPSILON = 1e-12;
// Fused operators of onnxruntime: dynamic int8 matrix products, attention, bias + GELU.
const FUSED = { domain: "com.microsoft" };

/**
 * `weights` as from tfjsWeights. Input: input_ids (int32, 1 × tokens). Output: embedding (float, 1 × 384, unit length).
 * One text per run, so there is no padding and no mask: activations are quantised over the whole input, and in a batch
 * a text's vector would depend on its neighbours. One at a time is also no slower, except for very short texts.
 */
export function minilmOnnx(weights) {
  const graph = onnxGraph({ name: "all-MiniLM-L6-v2", producer: "cairn", opset: 17, customOpset: "com.microsoft" });
  const { node } = graph;
  const bert = "StatefulPartitionedCall/model/tf_bert_model/bert";
  const ids = graph.input("input_ids", INT32, [1, "tokens"]);

  const floats = (name, constantName, dims) => {
    const { shape, data } = weights.floats(name);
    return graph.constant(constantName, FLOAT, dims ?? shape, data);
  };
  const scalar = (name, type, data) => graph.constant(name, type, [], data);
  const int64s = (name, ...values) => graph.constant(name, INT64, [values.length], BigInt64Array.from(values, BigInt));

  const quantized = (name, constantName) => {
    const { shape, scale, zeroPoint, data } = weights.quantized(name);
    return [
      graph.constant(constantName, UINT8, shape, data),
      scalar(`${constantName}.scale`, FLOAT, Float32Array.of(scale)),
      scalar(`${constantName}.zero`, UINT8, Uint8Array.of(zeroPoint)),
    ];
  };
  /** x · W (+ bias), the activations quantised on the fly and the product taken in integers. */
  const linear = (x, name, constantName, bias) => {
    return node("DynamicQuantizeMatMul", [x, ...quantized(name, constantName), ...(bias ? [bias] : [])], FUSED);
  };
  const layerNorm = (x, name, constantName) =>
    node(
      "LayerNormalization",
      [
        x,
        floats(`${name}/batchnorm/mul/ReadVariableOp`, `${constantName}.gain`),
        floats(`${name}/batchnorm/ReadVariableOp`, `${constantName}.bias`),
      ],
      { attributes: { axis: -1, epsilon: LAYER_NORM_EPSILON } },
    );

  // Embeddings: only the rows in use leave the uint8 table. All text is segment 0, so its vector joins the positions.
  const [words, wordScale, wordZero] = quantized("unknown", "words");
  const positions = weights.floats("unknown_0");
  const segment = weights.floats("unknown_1").data;
  const placed = positions.data.map((value, index) => value + segment[index % WIDTH]);
  const positionTable = graph.constant("positions", FLOAT, positions.shape, placed);
  const tokenCount = node("Slice", [node("Shape", [ids]), int64s("one", 1), int64s("two", 2)]);
  const wordVectors = node("DequantizeLinear", [node("Gather", [words, ids]), wordScale, wordZero]);
  const placeVectors = node("Slice", [positionTable, int64s("zero", 0), tokenCount]);
  let x = layerNorm(node("Add", [wordVectors, placeVectors]), `${bert}/embeddings/LayerNorm`, "embeddings.norm");

  for (let layer = 0; layer < LAYERS; layer++) {
    const from = `${bert}/encoder/layer_._${layer}`;
    const to = `layer${layer}`;
    const weight = (part) => `${from}/${part}/Tensordot/ReadVariableOp`;
    const bias = (part) => `${from}/${part}/BiasAdd/ReadVariableOp`;
    const attentionParts = ["query", "key", "value"].map((part) => `attention/self/${part}`);
    const attentionBias = new Float32Array(3 * WIDTH);
    for (const [index, part] of attentionParts.entries()) attentionBias.set(weights.floats(bias(part)).data, index * WIDTH);

    const attended = node(
      "MultiHeadAttention",
      [
        ...attentionParts.map((part) => linear(x, weight(part), `${to}.${part}`)),
        graph.constant(`${to}.attention.bias`, FLOAT, [3 * WIDTH], attentionBias),
      ],
      { ...FUSED, attributes: { num_heads: HEADS } },
    );
    const projected = linear(
      attended,
      weight("attention/output/dense"),
      `${to}.output`,
      floats(bias("attention/output/dense"), `${to}.output.bias`),
    );
    x = layerNorm(node("Add", [projected, x]), `${from}/attention/output/LayerNorm`, `${to}.attention.norm`);

    const widened = linear(x, weight("intermediate/dense"), `${to}.wide`);
    const activated = node("BiasGelu", [widened, floats(bias("intermediate/dense"), `${to}.wide.bias`)], FUSED);
    const narrowed = linear(activated, weight("output/dense"), `${to}.narrow`, floats(bias("output/dense"), `${to}.narrow.bias`));
    x = layerNorm(node("Add", [narrowed, x]), `${from}/output/LayerNorm`, `${to}.norm`);
  }

  // The mean over the tokens, brought to unit length.
  const mean = node("ReduceMean", [x], { attributes: { axes: { ints: [1] }, keepdims: 0 } });
  node("LpNormalization", [mean], { outputs: ["embedding"], attributes: { axis: -1, p: 2 } });
  graph.output("embedding", FLOAT, [1, WIDTH]);
  return graph.encode();
}
