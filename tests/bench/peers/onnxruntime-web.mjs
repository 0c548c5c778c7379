/** onnxruntime-web with ONNX's own Attention operator (opset 23); for a layer between MatMul and Add. It copies its inputs in at each call. */
import { bytes, integer, joined, message, text } from "./protobuf.mjs";

export async function load({ threads }, host) {
  const ort = await host.import("onnxruntime-web");
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  return { prepare: (w, inputs) => prepare(ort, w, inputs) };
}

async function prepare(ort, w, inputs) {
  const tensor = (data, ...dims) => new ort.Tensor("float32", data, dims);
  const model = w.embedDim ? layer(w, inputs) : attention(w);
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const feeds = w.embedDim
    ? { x: tensor(inputs.x, 1, w.seqLenQ, w.embedDim) }
    : {
        query: tensor(inputs.query, 1, w.heads, w.seqLenQ, w.headDim),
        key: tensor(inputs.key, 1, w.kvHeads, w.seqLenK, w.headDim),
        value: tensor(inputs.value, 1, w.kvHeads, w.seqLenK, w.headDim),
      };
  return { run: async () => (await session.run(feeds)).output.data };
}

function attention(w) {
  // is_causal of a single query would hide all keys but the first: that query sees all.
  const node = operator("Attention", ["query", "key", "value"], ["output"], { is_causal: w.causal ? 1 : 0 });
  return model({ nodes: [node], inputs: { query: 4, key: 4, value: 4 }, output: 4 });
}

function layer(w, inputs) {
  const weights = {};
  const project = (name, x, y) => {
    weights[`w${name}`] = { dims: [w.embedDim, w.embedDim], data: inputs[name].weight };
    weights[`b${name}`] = { dims: [w.embedDim], data: inputs[name].bias };
    return [operator("MatMul", [x, `w${name}`], [`m${name}`]), operator("Add", [`m${name}`, `b${name}`], [y])];
  };
  const middle = operator("Attention", ["q", "k", "v"], ["context"], { q_num_heads: w.heads, kv_num_heads: w.kvHeads });
  const nodes = [...["q", "k", "v"].flatMap((name) => project(name, "x", name)), middle, ...project("o", "context", "output")];
  return model({ nodes, weights, inputs: { x: 3 }, output: 3 });
}

// Field numbers of onnx.proto
const operator = (type, inputs, outputs, attributes = {}) =>
  joined([
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, type),
    ...Object.entries(attributes).map(([name, value]) => message(5, text(1, name), integer(3, value), integer(20, 2))),
  ]);

const weight = (name, { dims, data }) =>
  message(
    5,
    ...dims.map((dim) => integer(1, dim)),
    integer(2, 1),
    text(8, name),
    bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  );

const dimension = (name, axis) => message(1, text(2, `${name}_${axis}`)); // a name instead of a number: any size

const value = (field, name, rank) =>
  message(
    field,
    text(1, name),
    message(2, message(1, integer(1, 1), message(2, ...Array.from({ length: rank }, (_, axis) => dimension(name, axis))))),
  );

const model = ({ nodes, weights = {}, inputs, output }) =>
  joined([
    integer(1, 10),
    message(
      7,
      ...nodes.map((node) => bytes(1, node)),
      text(2, "attention"),
      ...Object.entries(weights).map(([name, data]) => weight(name, data)),
      ...Object.entries(inputs).map(([name, rank]) => value(11, name, rank)),
      value(12, "output", output),
    ),
    message(8, text(1, ""), integer(2, 23)),
  ]);
