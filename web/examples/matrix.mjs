/**
 * Numbers that are read off a matrix of weights [seqLen, seqLen].
 *
 * @typedef {object} RowFacts
 * @property {number} sum       1, unless the query sees no key
 * @property {number} entropy   in bits: 0 = looks at one word only, log2(n) = at n words alike
 * @property {number} largest   the largest weight
 * @property {number} column    where it is
 */

/**
 * @param {Float32Array} weights [seqLen, seqLen]
 * @param {number} row
 * @returns {RowFacts}
 */
export function rowFacts(weights, row) {
  const seqLen = Math.sqrt(weights.length);
  const facts = { sum: 0, entropy: 0, largest: -1, column: 0 };
  for (let column = 0; column < seqLen; column++) {
    const weight = weights[row * seqLen + column];
    facts.sum += weight;
    if (weight > 0) facts.entropy -= weight * Math.log2(weight);
    if (weight > facts.largest) Object.assign(facts, { largest: weight, column });
  }
  // A single weight of 1 - 2^-24 or -0 would show as "-0.00".
  facts.entropy = Math.max(0, facts.entropy);
  return facts;
}

/**
 * The mean of some heads. Its rows sum to 1 as those of each head do; it is not a softmax of anything.
 * @param {{ data: Float32Array, shape: number[] }} weights [numHeads, seqLen, seqLen]
 * @param {number[]} heads which ones, at least one
 * @returns {Float32Array} [seqLen, seqLen]
 */
export function meanOfHeads(weights, heads) {
  const size = weights.shape[1] * weights.shape[2];
  if (heads.length === 1) return weights.data.subarray(heads[0] * size, (heads[0] + 1) * size);
  return Float32Array.from({ length: size }, (_, i) => {
    let sum = 0;
    for (const head of heads) sum += weights.data[head * size + i];
    return sum / heads.length;
  });
}

/**
 * Largest absolute difference; NaN when the lengths differ or a number is NaN.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function largestDifference(a, b) {
  if (a.length !== b.length) return Number.NaN;
  let largest = 0;
  // Math.max gives NaN once there is one, so NaN on one side does not pass for agreement.
  for (let i = 0; i < a.length; i++) largest = Math.max(largest, Math.abs(a[i] - b[i]));
  return largest;
}
