/** ALiBi: attention with linear biases (arXiv:2108.12409). */
import { describeValue, fail } from "./errors.js";

/**
 * The slopes of ALiBi, one per query head, as the paper's authors compute them: for n = 2^k heads the geometric sequence
 * 2^(-8/n), 2^(-16/n), …, 2^(-8); for other numbers the slopes of the next smaller power of two, followed by every other slope of the next larger one.
 *
 * A head of slope m adds -m · |position of query - position of key| to its scores.
 *
 * @param numHeads - Number of query heads, at least 1.
 * @returns Float32Array of `numHeads` slopes: 8 heads give 1/2, 1/4, …, 1/256.
 * @throws AttentionError `"option"` when `numHeads` is not a whole number of at least 1.
 */
export function alibiSlopes(numHeads: number): Float32Array {
  if (!Number.isInteger(numHeads) || numHeads < 1 || numHeads > 2 ** 20)
    fail("option", "numHeads", "a whole number from 1 to 1048576", describeValue(numHeads));
  const slopes = new Float32Array(numHeads);
  const lower = 2 ** Math.floor(Math.log2(numHeads));
  for (let head = 0; head < numHeads; head++) {
    const exponent = head < lower ? (head + 1) / lower : (2 * (head - lower) + 1) / (2 * lower);
    slopes[head] = 2 ** (-8 * exponent);
  }
  return slopes;
}
