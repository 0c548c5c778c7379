/**
 * The installed package, by its public API. Inputs lie in its own tensors, as each contestant's do; outputs are new arrays, or with
 * `reusesOutput` always the same buffer: pages of fresh memory can cost as much as a small call.
 */

export async function load({ variant, threads, reusesOutput }, host) {
  const { loadAttention } = await host.importPackage();
  const attn = await loadAttention({ variant, threads });
  if (attn.threads !== threads) throw new Error(`asked for ${threads} threads: ${attn.selection.threadsReason}`);
  return { prepare: (w, inputs) => prepare(attn, w, inputs, reusesOutput), memoryBytes: () => attn.memory.totalBytes };
}

function prepare(attn, w, inputs, reusesOutput) {
  const shape = w.embedDim ? [w.seqLenQ, w.embedDim] : [w.heads, w.seqLenQ, w.headDim];
  const out = reusesOutput ? { out: attn.buffer(w.group === "decode" ? [1, ...shape] : shape) } : {};
  if (w.embedDim) return layer(attn, w, inputs, out);
  if (w.group === "decode") return decode(attn, w, inputs, out);
  // A small call is timed with plain arrays, copied in and out: that is where overhead counts.
  const own = w.group === "small" ? (data, shape) => ({ data, shape }) : (data, shape) => inWasm(attn, data, shape);
  const query = own(inputs.query, [w.heads, w.seqLenQ, w.headDim]);
  const key = own(inputs.key, [w.kvHeads, w.seqLenK, w.headDim]);
  const value = own(inputs.value, [w.kvHeads, w.seqLenK, w.headDim]);
  const options = { ...out, ...(w.causal && { causal: true }), ...(w.window && { window: w.window }) };
  return { run: () => attn.scaledDotProductAttention(query, key, value, options).output.data };
}

function decode(attn, w, inputs, out) {
  const cache = attn.createKvCache({ numKvHeads: w.kvHeads, headDim: w.headDim, capacity: w.seqLenK });
  const shape = [1, w.kvHeads, w.seqLenK, w.headDim];
  cache.append({ data: inputs.key, shape }, { data: inputs.value, shape });
  const query = inWasm(attn, inputs.query, [1, w.heads, 1, w.headDim]);
  return { run: () => attn.scaledDotProductAttention(query, cache, { causal: true, ...out }).output.data };
}

function layer(attn, w, { x, ...projections }, out) {
  const m = w.embedDim;
  const weights = {};
  for (const [name, { weight, bias }] of Object.entries(projections)) {
    weights[`w${name}`] = { data: transposed(weight, m), shape: [m, m] };
    weights[`b${name}`] = { data: bias, shape: [m] };
  }
  const attention = attn.createMultiHeadAttention({ embedDim: m, numHeads: w.heads, weights });
  const input = inWasm(attn, x, [w.seqLenQ, m]);
  return { run: () => attention.forward(input, out).output.data };
}

function inWasm(attn, data, shape) {
  const buffer = attn.buffer(shape);
  buffer.data.set(data);
  return buffer;
}

/** [in, out] to [out, in], as PyTorch stores weights. */
const transposed = (weight, m) => Float32Array.from({ length: m * m }, (_, i) => weight[(i % m) * m + Math.floor(i / m)]);
