/** Measures how far results are from float64: the package's, and those of plain float32 loops, which set the standard. */

/**
 * What is measured: one row of the table each. Values are uniform in -1..1, so errors are relative to the largest value. Few keys get many rows: the largest
 * of a few errors is a matter of luck.
 */
export const cases = [
  ...[64, 512, 4096].flatMap((keys) =>
    [1, 10, 100].map((scoreSize) => ({ kind: "many queries", queries: rows(keys), batch: 1, keys, scoreSize })),
  ),
  ...[64, 512, 4096].flatMap((keys) =>
    [1, 10, 100].map((scoreSize) => ({ kind: "one query (decoding)", queries: 1, batch: rows(keys) / 2, keys, scoreSize })),
  ),
  { kind: "one key outweighs all others", queries: 32, batch: 1, keys: 4096, scoreSize: 15.5 },
];

function rows(keys) {
  return Math.max(48, 32768 / keys);
}

const HEAD_DIM = 64;
const VALUE_DIM = 32;

/** Inputs of a case: [batch, 1, queries or keys, width], and the scale that makes the largest score as large as the case says. */
export function makeInputs({ kind, queries, batch, keys, scoreSize }, seed = 1) {
  const random = generator(seed);
  const query = random(batch * queries * HEAD_DIM);
  const key = random(batch * keys * HEAD_DIM);
  const value = random(batch * keys * VALUE_DIM);
  if (kind.startsWith("one key")) {
    // Scores scoreSize, 0, 0, …: sums of many small weights beside a large one are where naive summation fails.
    key.fill(0);
    for (let t = 0; t < queries; t++) query[t * HEAD_DIM] = 1;
    key[0] = 1;
    return { query, key, value, scale: scoreSize };
  }
  let largest = 0;
  for (let b = 0; b < batch; b++) {
    for (let t = 0; t < queries; t++) {
      for (let s = 0; s < keys; s++) {
        largest = Math.max(largest, Math.abs(dot(query, (b * queries + t) * HEAD_DIM, key, (b * keys + s) * HEAD_DIM)));
      }
    }
  }
  return { query, key, value, scale: Math.fround(scoreSize / largest) };
}

/** The package's output for a case. */
export function computeWith(attn, { queries, batch, keys }, { query, key, value, scale }) {
  const tensor = (data, length, width) => ({ data, shape: [batch, 1, length, width] });
  const { output } = attn.scaledDotProductAttention(
    tensor(query, queries, HEAD_DIM),
    tensor(key, keys, HEAD_DIM),
    tensor(value, keys, VALUE_DIM),
    {
      scale,
    },
  );
  return output.data;
}

/** The same in float64, or in plain loops that round every single operation to float32: `round` is the identity or Math.fround. */
export function computePlainly({ queries, batch, keys }, { query, key, value, scale }, round) {
  const output = new Float64Array(batch * queries * VALUE_DIM);
  const scores = new Float64Array(keys);
  for (let row = 0; row < batch * queries; row++) {
    const firstKey = Math.floor(row / queries) * keys;
    let largest = Number.NEGATIVE_INFINITY;
    for (let s = 0; s < keys; s++) {
      let sum = 0;
      const at = (firstKey + s) * HEAD_DIM;
      for (let d = 0; d < HEAD_DIM; d++) sum = round(sum + round(query[row * HEAD_DIM + d] * key[at + d]));
      scores[s] = round(scale * sum);
      largest = Math.max(largest, scores[s]);
    }
    let total = 0;
    for (let s = 0; s < keys; s++) {
      scores[s] = round(Math.exp(round(scores[s] - largest)));
      total = round(total + scores[s]);
    }
    const out = output.subarray(row * VALUE_DIM, (row + 1) * VALUE_DIM);
    for (let s = 0; s < keys; s++) {
      const weight = round(scores[s] / total);
      const at = (firstKey + s) * VALUE_DIM;
      for (let e = 0; e < VALUE_DIM; e++) out[e] = round(out[e] + round(weight * value[at + e]));
    }
  }
  return output;
}

/** The largest and the mean distance of two results. */
export function errors(actual, exact) {
  let largest = 0;
  let sum = 0;
  for (let i = 0; i < exact.length; i++) {
    const error = Math.abs(actual[i] - exact[i]);
    if (!(error <= largest)) largest = error; // NaN is no small error
    sum += error;
  }
  return { largest, mean: sum / exact.length };
}

/**
 * The exponential, seen through weights: scores 0 and -x give the second weight e^-x / (1 + e^-x), for x from 0 to 100 in steps of 0.001.
 * @returns {{ relative: number, absolute: number }} largest relative error down to -87, largest absolute error below it
 */
export function exponentialErrors(attn) {
  const count = 100_001;
  const query = Float32Array.from({ length: count }, (_, i) => -i / 1000);
  const result = attn.scaledDotProductAttention(
    { data: query, shape: [count, 1] },
    { data: Float32Array.of(0, 1), shape: [2, 1] },
    { data: Float32Array.of(0, 0), shape: [2, 1] },
    { scale: 1, returnWeights: true },
  );
  let relative = 0;
  let absolute = 0;
  for (let i = 0; i < count; i++) {
    const exact = Math.exp(query[i]) / (1 + Math.exp(query[i]));
    const error = Math.abs(result.weights.data[2 * i + 1] - exact);
    if (query[i] > -87) relative = error / exact > relative || Number.isNaN(error) ? error / exact : relative;
    else absolute = error > absolute || Number.isNaN(error) ? error : absolute;
  }
  return { relative, absolute };
}

/** Products of float32 numbers are exact in float64. */
function dot(a, atA, b, atB) {
  let sum = 0;
  for (let d = 0; d < HEAD_DIM; d++) sum += a[atA + d] * b[atB + d];
  return sum;
}

/** Uniform float32 numbers in -1..1, the same for the same seed (mulberry32). */
function generator(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
  return (length) => Float32Array.from({ length }, next);
}
