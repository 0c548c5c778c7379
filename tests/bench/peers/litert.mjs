/** LiteRT.js (TFLite with XNNPACK). It has no attention operator: batched products, softmax, batched products. */
import { TfliteModel } from "./tflite-model.mjs";

export async function load({ threads, relaxed }, host) {
  const folder = `${host.folder("@litertjs/core")}wasm/`;
  if (!host.isBrowser) (await import("./litert-in-node.mjs")).lendPage(folder, threads, host.require);
  const litert = await host.import("@litertjs/core");
  const flatbuffers = await host.import("flatbuffers");
  // The build without relaxed SIMD has to be asked for by its file.
  if (relaxed) await litert.loadLiteRt(folder, { threads: threads > 1 });
  else await litert.loadLiteRt(`${folder}litert_wasm_compat_internal.js`);
  return { prepare: (w, inputs) => prepare(litert, new TfliteModel(flatbuffers), w, inputs, threads) };
}

async function prepare(litert, model, w, inputs, numThreads) {
  const { bytes, feeds } = w.embedDim ? layer(model, w, inputs) : attention(model, w, inputs);
  const compiled = await litert.loadAndCompile(bytes, { accelerator: "wasm", cpuOptions: { numThreads } });
  const tensors = feeds.map(([data, shape]) => new litert.Tensor(data, shape));
  const run = async () => {
    const [output] = await compiled.run(tensors);
    const data = Float32Array.from(output.toTypedArray());
    output.delete();
    return data;
  };
  return { run };
}

function attend(model, { heads, rows, keys, dim }, query, key, value, mask) {
  const scale = model.tensor([1], Float32Array.of(1 / Math.sqrt(dim)));
  const scaled = model.add("MUL", [query, scale], [heads, rows, dim]);
  let scores = model.add("BATCH_MATMUL", [scaled, key], [heads, rows, keys], (b) => b.addFieldInt8(1, 1, 0)); // adj_y
  if (mask !== undefined) scores = model.add("ADD", [scores, mask], [heads, rows, keys]);
  const weights = model.add("SOFTMAX", [scores], [heads, rows, keys], (b) => b.addFieldFloat32(0, 1, 0)); // beta
  return model.add("BATCH_MATMUL", [weights, value], [heads, rows, dim]);
}

function attention(model, w, inputs) {
  // Query heads that share a key head become its rows, which is the same for one query.
  const size = { heads: w.kvHeads, rows: (w.heads / w.kvHeads) * w.seqLenQ, keys: w.seqLenK, dim: w.headDim };
  const queryShape = [size.heads, size.rows, size.dim];
  const keyShape = [size.heads, size.keys, size.dim];
  const [query, key, value] = [model.tensor(queryShape), model.tensor(keyShape), model.tensor(keyShape)];
  const hidden = (_, i) => (i % w.seqLenK > Math.floor(i / w.seqLenK) ? -1e9 : 0);
  const mask = w.causal ? model.tensor([1, w.seqLenQ, w.seqLenK], Float32Array.from({ length: w.seqLenQ * w.seqLenK }, hidden)) : undefined;
  const output = attend(model, size, query, key, value, mask);
  const feeds = [
    [inputs.query, queryShape],
    [inputs.key, keyShape],
    [inputs.value, keyShape],
  ];
  return { bytes: model.finish([query, key, value], [output]), feeds };
}

function layer(model, w, { x, ...projections }) {
  const [n, m] = [w.seqLenQ, w.embedDim];
  const size = { heads: w.heads, rows: n, keys: n, dim: w.headDim };
  const input = model.tensor([n, m]);
  const outIn = (weight) => Float32Array.from({ length: m * m }, (_, i) => weight[(i % m) * m + Math.floor(i / m)]);
  const project = (from, { weight, bias }) =>
    model.add("FULLY_CONNECTED", [from, model.tensor([m, m], outIn(weight)), model.tensor([m], bias)], [n, m]);
  const swap = model.ints(1, 0, 2);
  const heads = (name) => {
    const cut = model.add("RESHAPE", [project(input, projections[name]), model.ints(n, w.heads, w.headDim)], [n, w.heads, w.headDim]);
    return model.add("TRANSPOSE", [cut, swap], [w.heads, n, w.headDim]);
  };
  const context = attend(model, size, heads("q"), heads("k"), heads("v"));
  const rows = model.add("TRANSPOSE", [context, swap], [n, w.heads, w.headDim]);
  const flat = model.add("RESHAPE", [rows, model.ints(n, m)], [n, m]);
  const output = project(flat, projections.o);
  return { bytes: model.finish([input], [output]), feeds: [[x, [n, m]]] };
}
