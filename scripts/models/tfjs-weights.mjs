// Reads the weights of a TensorFlow.js graph model whose tensors are stored as uint8 with a scale and a minimum.

/** Looks tensors up by name: as stored (`quantized`) or as real numbers (`floats`). */
export function tfjsWeights(modelJson, shard) {
  const tensors = new Map();
  let offset = 0;
  for (const group of modelJson.weightsManifest) {
    for (const { name, shape, dtype, quantization } of group.weights) {
      const count = shape.reduce((product, size) => product * size, 1);
      const length = count * (quantization ? 1 : 4);
      tensors.set(name, { shape, dtype, quantization, data: shard.subarray(offset, offset + length) });
      offset += length;
    }
  }
  if (offset !== shard.length) throw new Error(`The weight file has ${shard.length} bytes, its manifest describes ${offset}`);

  const find = (name) => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`The model has no weight named ${name}`);
    return tensor;
  };
  return {
    /** value = scale · (data − zeroPoint); the mapping to ONNX is exact because zero itself is one of the 256 steps. */
    quantized(name) {
      const { shape, quantization, data } = find(name);
      const zeroPoint = Math.round(-quantization.min / quantization.scale);
      const inexact = Math.abs(zeroPoint + quantization.min / quantization.scale) > 1e-3;
      if (inexact || zeroPoint < 0 || zeroPoint > 255) throw new Error(`Zero is not a step of the quantised weight ${name}`);
      return { shape, scale: quantization.scale, zeroPoint, data };
    },
    floats(name) {
      const { shape, quantization, data } = find(name);
      return { shape, data: Float32Array.from(data, (step) => step * quantization.scale + quantization.min) };
    },
  };
}
