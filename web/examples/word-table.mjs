/**
 * The table of word vectors: words-100d.txt has one word per line, words-100d.f16.bin one row of 100 numbers per word, in the
 * same order, as little-endian float16 without a header. Node reads the two files, the page fetches them; both call
 * parseWordTable. make-word-vectors.mjs in build-scripts/ made them.
 *
 * @typedef {object} WordTable
 * @property {string[]} words              every word, the most frequent first
 * @property {Map<string, number>} rowOf   word → its row
 * @property {number} dimensions           numbers per word, 100
 * @property {Float32Array} vectors        [words.length, dimensions]
 * @property {Float32Array} mean           [dimensions], the mean of all rows
 */

const kDimensions = 100;

/**
 * @param {string} text words-100d.txt
 * @param {ArrayBuffer} bytes words-100d.f16.bin
 * @returns {WordTable}
 */
export function parseWordTable(text, bytes) {
  const words = text.split(/\r?\n/).filter((word) => word !== "");
  const expected = words.length * kDimensions * 2;
  // Also what a server that answers every address with its start page would be caught by.
  if (words.length === 0 || bytes.byteLength !== expected) {
    throw new Error(
      `word vectors: expected ${expected} bytes for ${words.length} words × ${kDimensions} float16 numbers, got ${bytes.byteLength}`,
    );
  }
  const view = new DataView(bytes);
  const vectors = new Float32Array(words.length * kDimensions);
  const mean = new Float64Array(kDimensions);
  for (let i = 0; i < vectors.length; i++) {
    vectors[i] = float16ToNumber(view.getUint16(i * 2, true));
    mean[i % kDimensions] += vectors[i] / words.length;
  }
  return {
    words,
    rowOf: new Map(words.map((word, row) => [word, row])),
    dimensions: kDimensions,
    vectors,
    mean: Float32Array.from(mean),
  };
}

/**
 * The row of a word as a view into the table, or undefined when the table does not have the word.
 * @param {WordTable} table
 * @param {string} word
 * @returns {Float32Array | undefined} [dimensions]
 */
export function vectorOf(table, word) {
  const row = table.rowOf.get(word);
  return row === undefined ? undefined : table.vectors.subarray(row * table.dimensions, (row + 1) * table.dimensions);
}

/**
 * IEEE 754 binary16 bits → number. DataView.getFloat16 is too new to rely on.
 * @param {number} bits
 */
export function float16ToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * The words whose vectors point most nearly where `vector` points, both seen from the mean of the table.
 * @param {WordTable} table
 * @param {ArrayLike<number>} vector [dimensions]
 * @param {number} count
 * @returns {string[]} nearest first
 */
export function nearestWords(table, vector, count) {
  const { dimensions, vectors, mean, words } = table;
  /** @type {{ row: number, likeness: number }[]} */
  const best = [];
  for (let row = 0; row < words.length; row++) {
    let along = 0;
    let square = 0;
    for (let i = 0; i < dimensions; i++) {
      const value = vectors[row * dimensions + i] - mean[i];
      along += value * (vector[i] - mean[i]);
      square += value * value;
    }
    // The length of `vector` is the same for every word, so the order needs only the word's own.
    const likeness = along / Math.sqrt(square);
    if (best.length === count && likeness <= best[count - 1].likeness) continue;
    best.push({ row, likeness });
    best.sort((a, b) => b.likeness - a.likeness);
    if (best.length > count) best.pop();
  }
  return best.map(({ row }) => words[row]);
}
