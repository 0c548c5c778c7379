/**
 * A fixed stream of numbers with the normal distribution: the same seed gives the same numbers on every machine. (mulberry32,
 * then twelve uniform numbers summed, because Math.log and Math.cos may differ in the last bit between engines.)
 * @param {number} seed any 32-bit integer
 * @returns {() => number} mean 0, standard deviation 1
 */
export function seededNormal(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += uniform();
    return sum;
  };
}

/**
 * FNV-1a, for a seed that depends on nothing but the word.
 * @param {string} text
 */
export function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ /** @type {number} */ (character.codePointAt(0)), 0x01000193);
  return hash >>> 0;
}
