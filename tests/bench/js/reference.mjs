/**
 * Attention in float64, for a sample of the output's rows: the first and the last row of every head, and as many between as a budget allows.
 * A row is numbered head · seqLenQ + t; in a layer a row is a position.
 */
import { visibleKeys } from "./workload.mjs";

/** float32 sums of a few thousand terms of about 1: a wrong result is off by far more. */
const kTolerance = 1e-4;

/** @returns {{ rows: number[], width: number, values: Float64Array[] }} */
export function makeReference(w, inputs, budget = 2e8) {
  const rows = sampleRows(w, budget);
  return {
    rows,
    width: w.embedDim ?? w.headDim,
    values: w.embedDim ? layerRows(w, inputs, rows) : rows.map((row) => attentionRow(w, inputs, row)),
  };
}

function sampleRows(w, budget) {
  const heads = w.embedDim ? 1 : w.heads;
  const total = heads * w.seqLenQ;
  const wanted = Math.min(total, Math.floor(budget / (4 * w.seqLenK * w.headDim * (w.embedDim ? w.heads : 1))), 128);
  const rows = new Set();
  for (let h = 0; h < heads; h++) rows.add(h * w.seqLenQ).add((h + 1) * w.seqLenQ - 1);
  // Multiples of the golden ratio fall everywhere and nowhere twice.
  for (let i = 1; rows.size < wanted; i++) rows.add(Math.floor(((i * 0.6180339887498949) % 1) * total));
  return [...rows].sort((a, b) => a - b);
}

/** The largest difference between the sampled rows of an output and the reference. */
export function compare(reference, rows) {
  let error = 0;
  reference.values.forEach((expected, i) => {
    for (let c = 0; c < reference.width; c++) {
      const difference = Math.abs(rows[i][c] - expected[c]);
      if (!(difference <= error)) error = difference; // NaN comes through
    }
  });
  return { error, isRight: error <= kTolerance };
}

function attentionRow(w, { query, key, value }, row) {
  const head = Math.floor(row / w.seqLenQ);
  const first = Math.floor(head / (w.heads / w.kvHeads)) * w.seqLenK * w.headDim;
  return attend(w, query, row * w.headDim, key, value, first, row % w.seqLenQ);
}

function attend(w, query, at, key, value, first, t) {
  const d = w.headDim;
  const [from, to] = visibleKeys(w, t);
  const weights = new Float64Array(to - from);
  for (let s = from; s < to; s++) {
    let dot = 0;
    for (let c = 0; c < d; c++) dot += query[at + c] * key[first + s * d + c];
    weights[s - from] = dot / Math.sqrt(d);
  }
  const max = weights.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const output = new Float64Array(d);
  let total = 0;
  for (let s = from; s < to; s++) {
    const weight = Math.exp(weights[s - from] - max);
    total += weight;
    for (let c = 0; c < d; c++) output[c] += weight * value[first + s * d + c];
  }
  return output.map((x) => x / total);
}

function layerRows(w, { x, q, k, v, o }, rows) {
  const m = w.embedDim;
  const everywhere = Array.from({ length: w.seqLenQ }, (_, t) => t);
  const key = byHeads(w, project(m, x, everywhere, k));
  const value = byHeads(w, project(m, x, everywhere, v));
  const query = project(m, x, rows, q);
  const context = new Float64Array(rows.length * m);
  rows.forEach((t, i) => {
    for (let h = 0; h < w.heads; h++) {
      const at = i * m + h * w.headDim;
      context.set(attend(w, query, at, key, value, h * w.seqLenK * w.headDim, t), at);
    }
  });
  const output = project(m, context, rows.map((_, i) => i), o); // biome-ignore format: one call
  return rows.map((_, i) => output.subarray(i * m, (i + 1) * m));
}

function project(m, x, rows, { weight, bias }) {
  const y = new Float64Array(rows.length * m);
  rows.forEach((row, i) => {
    const to = y.subarray(i * m, (i + 1) * m);
    to.set(bias);
    for (let a = 0; a < m; a++) {
      const factor = x[row * m + a];
      for (let b = 0; b < m; b++) to[b] += factor * weight[a * m + b];
    }
  });
  return y;
}

/** [positions, heads · d] to [heads, positions, d] */
function byHeads(w, x) {
  const y = new Float64Array(x.length);
  for (let t = 0; t < w.seqLenQ; t++) {
    for (let h = 0; h < w.heads; h++) {
      const from = (t * w.heads + h) * w.headDim;
      y.set(x.subarray(from, from + w.headDim), (h * w.seqLenQ + t) * w.headDim);
    }
  }
  return y;
}
