// Writes ONNX files. ONNX is a protocol-buffer format; a model needs only four of its wire types and a few dozen
// lines, so no protobuf library is pulled in for it. Field numbers are those of onnx.proto3.

export const FLOAT = 1;
export const UINT8 = 2;
export const INT32 = 6;
export const INT64 = 7;

/** Collects nodes and constants of a graph and encodes them as a ModelProto. */
export function onnxGraph({ name, producer, opset, customOpset }) {
  const nodes = [];
  const initializers = [];
  const inputs = [];
  const outputs = [];
  return {
    /** Adds a node; returns the name of its first output. */
    node(op, inputNames, { outputs: outs = [`${op}_${nodes.length}`], domain = "", attributes = {} } = {}) {
      nodes.push(
        message(
          ...inputNames.map((input) => text(1, input)),
          ...outs.map((output) => text(2, output)),
          text(3, `${op}_${nodes.length}`),
          text(4, op),
          ...Object.entries(attributes).map(([key, value]) => bytes(5, attribute(key, value))),
          ...(domain ? [text(7, domain)] : []),
        ),
      );
      return outs[0];
    },
    /** Adds a constant from a typed array; returns its name. */
    constant(constantName, type, dims, data) {
      const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      initializers.push(message(...dims.map((dim) => varint(1, dim)), varint(2, type), text(8, constantName), bytes(9, raw)));
      return constantName;
    },
    /** Adds a constant whose bytes are in a file next to the model; returns its name. */
    externalConstant(constantName, type, dims, location) {
      const place = message(text(1, "location"), text(2, location));
      initializers.push(
        message(...dims.map((dim) => varint(1, dim)), varint(2, type), text(8, constantName), bytes(13, place), varint(14, 1)),
      );
      return constantName;
    },
    input(inputName, type, dims) {
      inputs.push(valueInfo(inputName, type, dims));
      return inputName;
    },
    output(outputName, type, dims) {
      outputs.push(valueInfo(outputName, type, dims));
    },
    encode() {
      const graph = message(
        ...nodes.map((node) => bytes(1, node)),
        text(2, name),
        ...initializers.map((tensor) => bytes(5, tensor)),
        ...inputs.map((info) => bytes(11, info)),
        ...outputs.map((info) => bytes(12, info)),
      );
      return message(
        varint(1, 8), // IR version 8 goes with opset 17
        text(2, producer),
        bytes(7, graph),
        bytes(8, message(text(1, ""), varint(2, opset))),
        ...(customOpset ? [bytes(8, message(text(1, customOpset), varint(2, 1)))] : []),
      );
    },
  };
}

function attribute(name, value) {
  if (typeof value === "object") return message(text(1, name), ...value.ints.map((int) => varint(8, int)), varint(20, 7));
  if (Number.isInteger(value)) return message(text(1, name), varint(3, value), varint(20, 2));
  const float = Buffer.alloc(4);
  float.writeFloatLE(value);
  return message(text(1, name), Buffer.concat([key(2, 5), float]), varint(20, 1));
}

function valueInfo(name, type, dims) {
  const shape = message(...dims.map((dim) => bytes(1, typeof dim === "string" ? message(text(2, dim)) : message(varint(1, dim)))));
  return message(text(1, name), bytes(2, message(bytes(1, message(varint(1, type), bytes(2, shape))))));
}

const message = (...fields) => Buffer.concat(fields);
const key = (field, wireType) => encodeVarint(BigInt((field << 3) | wireType));
const varint = (field, value) => Buffer.concat([key(field, 0), encodeVarint(BigInt.asUintN(64, BigInt(value)))]);
const bytes = (field, data) => Buffer.concat([key(field, 2), encodeVarint(BigInt(data.length)), data]);
const text = (field, value) => bytes(field, Buffer.from(value, "utf8"));

function encodeVarint(value) {
  const out = [];
  let rest = value;
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    out.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(out);
}
