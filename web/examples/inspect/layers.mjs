/** What stands around attention in a transformer, in plain loops: small beside what the example is about. */

/**
 * @typedef {{ data: Float32Array, shape: number[] }} Matrix
 */

/**
 * y = x · Wᵀ + b for weights [out, in], or y = x · W + b for [in, out].
 * @param {Matrix} x
 * @param {Matrix} weight
 * @param {Matrix} bias
 * @param {"out-in" | "in-out"} layout
 * @returns {Matrix}
 */
export function linear(x, weight, bias, layout) {
  const [rows, inDim] = x.shape;
  const outDim = bias.data.length;
  const [outStride, inStride] = layout === "out-in" ? [inDim, 1] : [1, outDim];
  const data = new Float32Array(rows * outDim);
  for (let r = 0; r < rows; r++) {
    for (let o = 0; o < outDim; o++) {
      let sum = bias.data[o];
      for (let i = 0; i < inDim; i++) sum += x.data[r * inDim + i] * weight.data[o * outStride + i * inStride];
      data[r * outDim + o] = sum;
    }
  }
  return { data, shape: [rows, outDim] };
}

/**
 * (x - mean) / sqrt(variance + epsilon) · weight + bias, row by row.
 * @param {Matrix} x
 * @param {Matrix} weight
 * @param {Matrix} bias
 * @param {number} epsilon
 * @returns {Matrix}
 */
export function layerNorm(x, weight, bias, epsilon) {
  const [rows, width] = x.shape;
  const data = new Float32Array(x.data.length);
  for (let r = 0; r < rows; r++) {
    const row = x.data.subarray(r * width, (r + 1) * width);
    const mean = row.reduce((sum, value) => sum + value, 0) / width;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    const factor = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < width; i++) data[r * width + i] = (row[i] - mean) * factor * weight.data[i] + bias.data[i];
  }
  return { data, shape: x.shape };
}

/** @param {Matrix} a @param {Matrix} b @returns {Matrix} */
export function add(a, b) {
  return { data: a.data.map((value, i) => value + b.data[i]), shape: a.shape };
}

/**
 * x · Φ(x), with the error function (BERT) or its approximation by tanh (GPT-2).
 * @param {Matrix} x
 * @param {"erf" | "tanh"} kind
 * @returns {Matrix}
 */
export function gelu({ data, shape }, kind) {
  const tanh = (/** @type {number} */ x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  const exact = (/** @type {number} */ x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
  return { data: data.map(kind === "tanh" ? tanh : exact), shape };
}

/** Error function: its series near 0, a continued fraction beyond; good to 1e-12. @param {number} x */
export function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = size;
    let sum = size;
    for (let n = 1; n < 80; n++) {
      term *= (-size * size) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / ((size + fraction) * Math.sqrt(Math.PI)));
}
