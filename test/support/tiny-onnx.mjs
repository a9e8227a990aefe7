// Writes a minimal text model: each token id selects a row of a table.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FLOAT, INT64, onnxGraph } from "../../scripts/models/onnx-writer.mjs";

export function writeTinyModel(folder, { rows, name = "model.onnx", inputs = ["input_ids"], output = "last_hidden_state", external } = {}) {
  const graph = onnxGraph({ name: "tiny", producer: "test", opset: 17 });
  const width = rows[0].length;
  for (const input of inputs) graph.input(input, INT64, [1, "tokens"]);
  const data = Float32Array.from(rows.flat());
  const dims = [rows.length, width];
  if (external) writeFileSync(join(folder, external), Buffer.from(data.buffer));
  const table = external ? graph.externalConstant("table", FLOAT, dims, external) : graph.constant("table", FLOAT, dims, data);
  const pooled = output === "sentence_embedding";
  const tokens = graph.node("Gather", [table, "input_ids"], pooled ? {} : { outputs: [output] });
  if (pooled) graph.node("ReduceMax", [tokens], { outputs: [output], attributes: { axes: { ints: [1] }, keepdims: 0 } });
  graph.output(output, FLOAT, pooled ? [1, width] : [1, "tokens", width]);
  writeFileSync(join(folder, name), graph.encode());
}
