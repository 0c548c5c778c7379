/**
 * TensorFlow.js with its wasm backend: matMul, softmax, matMul. Head by head, because only products of plain matrices go to its fast library.
 * Inputs stay in the backend; the output is read back.
 */
export async function load({ threads }, host) {
  const tf = await host.import("@tensorflow/tfjs-core");
  const backend = await host.import("@tensorflow/tfjs-backend-wasm");
  if (host.isBrowser) backend.setWasmPaths(`${host.folder("@tensorflow/tfjs-backend-wasm")}dist/`);
  backend.setThreadsCount(threads);
  await tf.setBackend("wasm");
  await tf.ready();
  return { prepare: (w, inputs) => (w.embedDim ? layer(tf, w, inputs) : attention(tf, w, inputs)) };
}

const attend = (tf, query, key, value, mask) => {
  const scores = tf.matMul(tf.mul(query, 1 / Math.sqrt(query.shape[1])), tf.transpose(key));
  return tf.matMul(tf.softmax(mask ? tf.add(scores, mask) : scores), value);
};

function attention(tf, w, inputs) {
  // Query heads that share a key head become its rows, which is the same for one query.
  const perKvHead = (w.heads / w.kvHeads) * w.seqLenQ;
  const heads = (data, rows) => tf.unstack(tf.tensor(data, [w.kvHeads, rows, w.headDim]));
  const [query, key, value] = [heads(inputs.query, perKvHead), heads(inputs.key, w.seqLenK), heads(inputs.value, w.seqLenK)];
  const hidden = (_, i) => (i % w.seqLenK > Math.floor(i / w.seqLenK) ? -1e9 : 0);
  const mask = w.causal ? tf.tensor(Float32Array.from({ length: w.seqLenQ * w.seqLenK }, hidden), [w.seqLenQ, w.seqLenK]) : undefined;
  return { run: () => readBack(tf, () => tf.stack(query.map((q, h) => attend(tf, q, key[h], value[h], mask)))) };
}

function layer(tf, w, { x, ...projections }) {
  const m = w.embedDim;
  const input = tf.tensor(x, [w.seqLenQ, m]);
  const p = Object.fromEntries(
    Object.entries(projections).map(([name, { weight, bias }]) => [name, { b: tf.tensor(weight, [m, m]), bias: tf.tensor(bias, [m]) }]),
  );
  const heads = (name) => {
    const projected = tf.fused.matMul({ a: input, ...p[name] });
    return tf.unstack(tf.transpose(tf.reshape(projected, [w.seqLenQ, w.heads, w.headDim]), [1, 0, 2]));
  };
  const run = () => {
    const [q, k, v] = ["q", "k", "v"].map(heads);
    const context = tf.transpose(tf.stack(q.map((head, h) => attend(tf, head, k[h], v[h]))), [1, 0, 2]);
    return tf.fused.matMul({ a: tf.reshape(context, [w.seqLenQ, m]), ...p.o });
  };
  return { run: () => readBack(tf, run) };
}

function readBack(tf, compute) {
  const result = tf.tidy(compute);
  const data = result.dataSync();
  result.dispose();
  return data;
}
