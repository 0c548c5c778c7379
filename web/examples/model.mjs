/**
 * The input and the weights of the examples. Nothing here is trained: the weights are made by hand, so that each head does
 * something that can be said in a sentence, and so that the picture of a real sentence means something.
 *
 * Input x, one row of 128 numbers per token: 100 from the word's vector, 28 from its position (sine and cosine of the position at
 * 14 speeds, as in "Attention Is All You Need" section 3.5, appended here in place of added).
 */
import { hashOf, seededNormal } from "./random.mjs";
import { vectorOf } from "./word-table.mjs";

export const kWordDim = 100;
export const kPositionDim = 28;
export const kEmbedDim = kWordDim + kPositionDim;
export const kHeadCounts = [1, 2, 4, 8];

// Radians per position, slow to fast. With these the sum of cos(speed · distance) over all speeds stays below 0.4 of its value at
// distance 0 for every other distance up to 128: "one word back" cannot be confused with "57 words back".
const kSpeeds = Array.from({ length: kPositionDim / 2 }, (_, f) => 3.06 * ((f + 1) / 14) ** 1.75);

// Scaled scores: kWordGain for two words alike in every way, kSelfGain taken off a word with itself, kNeighbourGain for the neighbour.
const kWordGain = 8;
const kSelfGain = 5.5;
const kNeighbourGain = 6;
// Squared distance of a word's vector from the mean of the table, as it is for most words.
const kUsualSquare = 25;

/**
 * What a head does, in words for a heading.
 * @param {number} head
 * @param {number} numHeads
 */
export function describeHead(head, numHeads) {
  if (shiftOf(head, numHeads) === -1) return "looks at the word before";
  if (shiftOf(head, numHeads) === 1) return "looks at the word after";
  return "looks for other words used alike";
}

/**
 * All heads in one sentence: "head 1 looks at the word before; heads 2 to 4 look for other words used alike".
 * @param {number} numHeads
 */
export function describeHeads(numHeads) {
  /** @type {{ what: string, first: number, last: number }[]} */
  const groups = [];
  for (let head = 0; head < numHeads; head++) {
    const what = describeHead(head, numHeads);
    const group = groups.at(-1);
    if (group?.what === what) group.last = head;
    else groups.push({ what, first: head, last: head });
  }
  return groups
    .map(({ what, first, last }) =>
      first === last ? `head ${first + 1} ${what}` : `heads ${first + 1} to ${last + 1} ${what.replace("looks", "look")}`,
    )
    .join("; ");
}

/**
 * x [tokens.length, kEmbedDim], row-major.
 * @param {import("./tokenize.mjs").Token[]} tokens
 * @param {import("./word-table.mjs").WordTable} table
 * @returns {Float32Array}
 */
export function embed(tokens, table) {
  const x = new Float32Array(tokens.length * kEmbedDim);
  tokens.forEach((token, position) => {
    const row = x.subarray(position * kEmbedDim, (position + 1) * kEmbedDim);
    row.set((token.word !== undefined && vectorOf(table, token.word)) || unknownVector(token.text, table));
    kSpeeds.forEach((speed, f) => {
      row[kWordDim + 2 * f] = Math.sin(speed * position);
      row[kWordDim + 2 * f + 1] = Math.cos(speed * position);
    });
  });
  return x;
}

/**
 * The vector of a word that the table does not have: as far from the mean as words usually are, in a direction that depends on
 * its letters alone. It resembles no word in particular, and the same unknown word twice resembles itself.
 * @param {string} text
 * @param {import("./word-table.mjs").WordTable} table
 */
function unknownVector(text, table) {
  const normal = seededNormal(hashOf(text.toLowerCase()));
  return Float32Array.from(table.mean, (value) => value + 0.5 * normal());
}

/** @type {WeakMap<import("./word-table.mjs").WordTable, Map<number, ReturnType<typeof makeWeights>>>} */
const made = new WeakMap();

/**
 * makeWeights, remembered: the page needs them at every key that is pressed.
 * @param {number} numHeads
 * @param {import("./word-table.mjs").WordTable} table
 */
export function weightsFor(numHeads, table) {
  const ofTable = made.get(table) ?? new Map();
  made.set(table, ofTable);
  const weights = ofTable.get(numHeads) ?? makeWeights(numHeads, table);
  ofTable.set(numHeads, weights);
  return weights;
}

/**
 * The weights as attn.selfAttention takes them, [out, in], y = x · Wᵀ + b. All [kEmbedDim, kEmbedDim]; bq, bk [kEmbedDim].
 *
 * A head that looks for words used alike reads `headDim - 14` directions of the (centred) word vectors, the same ones as query and
 * as key, so that q·k is large where the words are alike. Its last 14 dimensions hold the position, with a minus sign in the
 * query: that lowers the score of a word with itself, which would otherwise always win.
 * A head that looks at a neighbour reads the position only; its query is turned by one step, so that q·k is largest there.
 * wv is an orthogonal matrix and wo its transpose: the output is a mix of the inputs, in the space of the word vectors.
 *
 * @param {number} numHeads one of kHeadCounts
 * @param {import("./word-table.mjs").WordTable} table
 */
function makeWeights(numHeads, table) {
  if (!kHeadCounts.includes(numHeads)) throw new Error(`heads: expected one of ${kHeadCounts.join(", ")}, got ${numHeads}`);
  const headDim = kEmbedDim / numHeads;
  const wq = new Float32Array(kEmbedDim * kEmbedDim);
  const wk = new Float32Array(kEmbedDim * kEmbedDim);
  const directions = orthogonal(kWordDim, 7);
  let direction = 0;
  for (let head = 0; head < numHeads; head++) {
    const at = (/** @type {number} */ row, /** @type {number} */ column) => (head * headDim + row) * kEmbedDim + column;
    const shift = shiftOf(head, numHeads);
    const positionDim = shift === 0 ? Math.min(headDim / 2, kPositionDim / 2) : Math.min(headDim, kPositionDim);
    const wordDim = shift === 0 ? Math.min(headDim - positionDim, kWordDim) : 0;
    // The library divides scores by √headDim; the gains undo that, so that every number of heads gives a picture of like contrast.
    const word = Math.sqrt((kWordGain * Math.sqrt(headDim) * kWordDim) / (kUsualSquare * wordDim));
    for (let i = 0; i < wordDim; i++, direction++) {
      for (let j = 0; j < kWordDim; j++) {
        const value = word * directions[(direction % kWordDim) * kWordDim + j];
        wq[at(i, j)] = value;
        wk[at(i, j)] = value;
      }
    }
    // Half of the gain (its root) goes to the query and half to the key, as with the words.
    const position = Math.sqrt((Math.sqrt(headDim) * (shift === 0 ? kSelfGain : kNeighbourGain) * 2) / positionDim);
    const sign = shift === 0 ? -1 : 1;
    for (let f = 0; f < positionDim / 2; f++) {
      // Spread over all speeds, because fast ones alone would not tell 1 from 3, and slow ones alone not 1 from 2.
      const speed = Math.floor((f * kSpeeds.length * 2) / positionDim);
      const column = kWordDim + 2 * speed;
      const row = wordDim + 2 * f;
      const [sin, cos] = [Math.sin(kSpeeds[speed] * shift), Math.cos(kSpeeds[speed] * shift)];
      wq[at(row, column)] = sign * position * cos; // sin(a + b) = sin a · cos b + cos a · sin b
      wq[at(row, column + 1)] = sign * position * sin;
      wq[at(row + 1, column)] = -sign * position * sin; // cos(a + b) = cos a · cos b - sin a · sin b
      wq[at(row + 1, column + 1)] = sign * position * cos;
      wk[at(row, column)] = position;
      wk[at(row + 1, column + 1)] = position;
    }
  }
  const wv = orthogonal(kEmbedDim, 11);
  const wo = new Float32Array(wv.length);
  for (let i = 0; i < kEmbedDim; i++) for (let j = 0; j < kEmbedDim; j++) wo[j * kEmbedDim + i] = wv[i * kEmbedDim + j];
  return { wq, wk, wv, wo, bq: centre(wq, table.mean), bk: centre(wk, table.mean) };
}

/** Which neighbour a head looks at: -1, 1, or 0 for none. One of four heads, two of eight. @param {number} head @param {number} numHeads */
function shiftOf(head, numHeads) {
  if (head === 0 && numHeads >= 2) return -1;
  return head === 1 && numHeads >= 8 ? 1 : 0;
}

/** bias = -W · mean: the projection then sees how a word differs from the average word. @param {Float32Array} w @param {Float32Array} mean */
function centre(w, mean) {
  return Float32Array.from({ length: kEmbedDim }, (_, i) => {
    let sum = 0;
    for (let j = 0; j < kWordDim; j++) sum -= w[i * kEmbedDim + j] * mean[j];
    return sum;
  });
}

/**
 * A fixed orthogonal matrix [size, size]: seeded random rows, made perpendicular one after the other (Gram-Schmidt).
 * @param {number} size
 * @param {number} seed
 */
function orthogonal(size, seed) {
  const normal = seededNormal(seed);
  const rows = Array.from({ length: size }, () => Float64Array.from({ length: size }, normal));
  rows.forEach((row, i) => {
    for (let j = 0; j < i; j++) {
      const overlap = dot(row, rows[j]);
      for (let k = 0; k < size; k++) row[k] -= overlap * rows[j][k];
    }
    const norm = Math.sqrt(dot(row, row));
    for (let k = 0; k < size; k++) row[k] /= norm;
  });
  return Float32Array.from(rows.flatMap((row) => [...row]));
}

/** @param {Float64Array} a @param {Float64Array} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
