/**
 * Attention from its definition: one query at a time, in float64, reading only keys that the query sees. Shares no code and no shortcut with the package;
 * it knows nothing of layouts, broadcasting or alignments, which the drawing of problems translates.
 */

/** All tensors are [batch, heads, positions, width]. */
export interface Problem {
  batch: number;
  heads: number;
  kvHeads: number;
  queries: number;
  keys: number;
  width: number;
  valueWidth: number;
  query: ArrayLike<number>;
  key: ArrayLike<number>;
  value: ArrayLike<number>;
  scale: number;
  /** 0 = off */
  softcap: number;
  /** 1 where the query sees the key [batch, heads, queries, keys] */
  seen: Uint8Array;
  /** what is added to the score of a key that is seen [batch, heads, queries, keys] */
  added: Float64Array;
  /** one logit per head, without a value */
  sinks?: ArrayLike<number> | undefined;
}

export interface Solution {
  /** [batch, heads, queries, valueWidth] */
  output: Float64Array;
  /** [batch, heads, queries, keys] */
  weights: Float64Array;
  scaled: Float64Array;
  softcapped: Float64Array;
  masked: Float64Array;
  /** [batch, heads, queries] */
  lse: Float64Array;
  /** What float32 may be off by, per row: relative in a weight, absolute in lse. */
  slack: Float64Array;
  /** The same, absolute, in each score. */
  scoreSlack: Float64Array;
  /** Largest absolute value that the row sums up. */
  valueSize: Float64Array;
}

const EPSILON = 2 ** -23;

export function solve(p: Problem): Solution {
  const rows = p.batch * p.heads * p.queries;
  const pairs = rows * p.keys;
  const result: Solution = {
    output: new Float64Array(rows * p.valueWidth),
    weights: new Float64Array(pairs),
    scaled: new Float64Array(pairs),
    softcapped: new Float64Array(pairs),
    masked: new Float64Array(pairs).fill(-Infinity),
    lse: new Float64Array(rows),
    slack: new Float64Array(rows),
    scoreSlack: new Float64Array(pairs),
    valueSize: new Float64Array(rows),
  };
  for (let b = 0; b < p.batch; b++) {
    for (let h = 0; h < p.heads; h++) {
      for (let t = 0; t < p.queries; t++) solveRow(p, b, h, t, result);
    }
  }
  return result;
}

function solveRow(p: Problem, b: number, h: number, t: number, result: Solution): void {
  const row = (b * p.heads + h) * p.queries + t;
  const kvHead = Math.floor(h / (p.heads / p.kvHeads));
  const seen: number[] = [];
  let largest = p.sinks === undefined ? -Infinity : p.sinks[h]!;
  for (let s = 0; s < p.keys; s++) {
    const at = row * p.keys + s;
    let dot = 0;
    let absolute = 0;
    for (let d = 0; d < p.width; d++) {
      const product = p.query[row * p.width + d]! * p.key[((b * p.kvHeads + kvHead) * p.keys + s) * p.width + d]!;
      dot += product;
      absolute += Math.abs(product);
    }
    const scaled = p.scale * dot;
    const softcapped = p.softcap === 0 ? scaled : p.softcap * Math.tanh(scaled / p.softcap);
    result.scaled[at] = scaled;
    result.softcapped[at] = softcapped;
    // Rounding errors of a sum of n products grow like sqrt(n) and are bounded by n: this is between the two, and the sum with a bias rounds, too.
    result.scoreSlack[at] = EPSILON * (4 + p.width / 16) * Math.abs(p.scale) * absolute;
    if (p.seen[at] === 0) continue;
    seen.push(s);
    const added = p.added[at]!;
    const score = softcapped + added;
    result.masked[at] = score;
    largest = Math.max(largest, score);
    result.scoreSlack[at]! += EPSILON * 4 * Math.abs(added);
  }
  // An error of e in a score is a factor of 1 + e in its weight. Scores far below the largest have no weight, whatever their error.
  let scoreSlack = EPSILON * Math.abs(p.sinks?.[h] ?? 0);
  for (const s of seen) {
    const at = row * p.keys + s;
    if (result.masked[at]! > largest - 110) scoreSlack = Math.max(scoreSlack, result.scoreSlack[at]!);
  }
  result.slack[row] = 2 * scoreSlack + EPSILON * (32 + p.keys / 64);

  let sum = p.sinks === undefined ? 0 : Math.exp(p.sinks[h]! - largest);
  for (const s of seen) sum += Math.exp(result.masked[row * p.keys + s]! - largest);
  result.lse[row] = sum === 0 ? -Infinity : largest + Math.log(sum);
  let valueSize = 0;
  for (const s of seen) {
    const weight = Math.exp(result.masked[row * p.keys + s]! - largest) / sum;
    result.weights[row * p.keys + s] = weight;
    for (let e = 0; e < p.valueWidth; e++) {
      const value = p.value[((b * p.kvHeads + kvHead) * p.keys + s) * p.valueWidth + e]!;
      result.output[row * p.valueWidth + e]! += weight * value;
      if (weight > 0 && !(Math.abs(value) <= valueSize)) valueSize = Math.abs(value);
    }
  }
  result.valueSize[row] = valueSize;
}
