/**
 * What a user writes by hand: plain loops over Float32Array. For the larger workloads only the rows that are verified are computed, and the time
 * is scaled up by their share of the work (`share`).
 */
import { visibleKeys } from "./workload.mjs";

/** More than this many operations, and only some rows are computed. */
const kWholeWork = 2e8;

export const load = async () => ({ prepare: (w, inputs, rows) => (w.embedDim ? layer(w, inputs) : attention(w, inputs, rows)) });

function attention(w, { query, key, value }, sampled) {
  const every = w.heads * w.seqLenQ;
  const all = 4 * every * w.seqLenK * w.headDim <= kWholeWork;
  const rows = all ? Array.from({ length: every }, (_, i) => i) : sampled;
  const scores = new Float32Array(w.seqLenK);
  const run = () => {
    const output = new Float32Array(every * w.headDim);
    for (const row of rows) attend(w, query, key, value, scores, output, row);
    return output;
  };
  const pairs = (t) => visibleKeys(w, t)[1] - visibleKeys(w, t)[0];
  let total = 0;
  for (let t = 0; t < w.seqLenQ; t++) total += w.heads * pairs(t);
  return { run, share: rows.reduce((sum, row) => sum + pairs(row % w.seqLenQ), 0) / total };
}

function attend(w, query, key, value, scores, output, row) {
  const d = w.headDim;
  const head = Math.floor(row / w.seqLenQ);
  const first = Math.floor(head / (w.heads / w.kvHeads)) * w.seqLenK * d;
  const [from, to] = visibleKeys(w, row % w.seqLenQ);
  const scale = 1 / Math.sqrt(d);
  let max = Number.NEGATIVE_INFINITY;
  for (let s = from; s < to; s++) {
    let dot = 0;
    for (let c = 0; c < d; c++) dot += query[row * d + c] * key[first + s * d + c];
    scores[s] = dot * scale;
    if (scores[s] > max) max = scores[s];
  }
  let total = 0;
  for (let s = from; s < to; s++) {
    scores[s] = Math.exp(scores[s] - max);
    total += scores[s];
  }
  for (let s = from; s < to; s++) {
    const weight = scores[s] / total;
    for (let c = 0; c < d; c++) output[row * d + c] += weight * value[first + s * d + c];
  }
}

function layer(w, { x, q, k, v, o }) {
  const m = w.embedDim;
  const rows = Array.from({ length: w.heads * w.seqLenQ }, (_, i) => i);
  const scores = new Float32Array(w.seqLenK);
  const run = () => {
    const [query, key, value] = [q, k, v].map((p) => toHeads(w, project(m, x, p)));
    const context = new Float32Array(x.length);
    for (const row of rows) attend(w, query, key, value, scores, context, row);
    return project(m, toPositions(w, context), o);
  };
  return { run };
}

function project(m, x, { weight, bias }) {
  const y = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += m) {
    for (let b = 0; b < m; b++) y[row + b] = bias[b];
    for (let a = 0; a < m; a++) {
      const factor = x[row + a];
      for (let b = 0; b < m; b++) y[row + b] += factor * weight[a * m + b];
    }
  }
  return y;
}

const toHeads = (w, x) => swapped(x, w.seqLenQ, w.heads, w.headDim);
const toPositions = (w, x) => swapped(x, w.heads, w.seqLenQ, w.headDim);

/** [a, b, d] to [b, a, d] */
function swapped(x, a, b, d) {
  const y = new Float32Array(x.length);
  for (let i = 0; i < a; i++) {
    for (let j = 0; j < b; j++) y.set(x.subarray((i * b + j) * d, (i * b + j + 1) * d), (j * a + i) * d);
  }
  return y;
}
