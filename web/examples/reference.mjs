/**
 * The seven steps in plain float64 loops, as the formula reads. The examples compare the library's numbers with these.
 *
 * @param {Float32Array} x [seqLen, embedDim]
 * @param {{ wq: Float32Array, wk: Float32Array, wv: Float32Array, wo: Float32Array, bq?: Float32Array, bk?: Float32Array, bv?: Float32Array, bo?: Float32Array }} weights
 *   each matrix [embedDim, embedDim] as [out, in]
 * @param {{ numHeads: number, embedDim: number, causal?: boolean }} options
 * @returns {{ weights: Float64Array, output: Float64Array }} [numHeads, seqLen, seqLen] and [seqLen, embedDim]
 */
export function selfAttentionFloat64(x, weights, { numHeads, embedDim, causal = false }) {
  const seqLen = x.length / embedDim;
  const headDim = embedDim / numHeads;
  const query = project(x, weights.wq, weights.bq, embedDim);
  const key = project(x, weights.wk, weights.bk, embedDim);
  const value = project(x, weights.wv, weights.bv, embedDim);
  const probabilities = new Float64Array(numHeads * seqLen * seqLen);
  const context = new Float64Array(seqLen * embedDim);
  for (let head = 0; head < numHeads; head++) {
    const column = head * headDim;
    for (let i = 0; i < seqLen; i++) {
      const visible = causal ? i + 1 : seqLen;
      const row = probabilities.subarray((head * seqLen + i) * seqLen, (head * seqLen + i) * seqLen + visible);
      for (let j = 0; j < visible; j++) {
        for (let d = 0; d < headDim; d++) row[j] += query[i * embedDim + column + d] * key[j * embedDim + column + d];
        row[j] /= Math.sqrt(headDim);
      }
      const largest = row.reduce((a, b) => Math.max(a, b));
      let sum = 0;
      for (let j = 0; j < visible; j++) sum += row[j] = Math.exp(row[j] - largest);
      for (let j = 0; j < visible; j++) {
        row[j] /= sum;
        for (let d = 0; d < headDim; d++) context[i * embedDim + column + d] += row[j] * value[j * embedDim + column + d];
      }
    }
  }
  return { weights: probabilities, output: project(context, weights.wo, weights.bo, embedDim) };
}

/**
 * x · Wᵀ + b
 * @param {Float32Array | Float64Array} x [rows, width]
 * @param {Float32Array} w [width, width] as [out, in]
 * @param {Float32Array | undefined} b [width]
 * @param {number} width
 */
function project(x, w, b, width) {
  const y = new Float64Array(x.length);
  for (let row = 0; row < x.length / width; row++) {
    for (let out = 0; out < width; out++) {
      let sum = b ? b[out] : 0;
      for (let i = 0; i < width; i++) sum += x[row * width + i] * w[out * width + i];
      y[row * width + out] = sum;
    }
  }
  return y;
}
