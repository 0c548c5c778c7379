/** Byte-pair encoding, GPT-2's way of cutting a text into tokens of its vocabulary. */

const kWords = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/**
 * @param {Map<string, number>} vocabulary
 * @param {string[]} merges pairs with a blank between, the most frequent first
 */
export function bytePair(vocabulary, merges) {
  const rank = new Map(merges.map((pair, i) => [pair, i]));
  const letters = byteLetters();
  const bytes = new Map(letters.map((letter, byte) => [letter, byte]));
  const names = new Map([...vocabulary].map(([token, id]) => [id, token]));
  return {
    /** @param {string} text */
    encode: (text) =>
      (text.match(kWords) ?? []).flatMap((word) => {
        const parts = Array.from(new TextEncoder().encode(word), (byte) => letters[byte]);
        return merge(parts, rank).map((token) => {
          const id = vocabulary.get(token);
          if (id === undefined) throw new Error(`the vocabulary has no ${token}`);
          return id;
        });
      }),
    /** The text of a token, with a low line for a blank. @param {number} id */
    label: (id) => {
      const token = names.get(id);
      if (token === undefined) return String(id);
      const raw = Uint8Array.from([...token], (letter) => bytes.get(letter) ?? 63);
      return new TextDecoder().decode(raw).replaceAll(" ", "_").replaceAll("\n", "\\n");
    },
  };
}

/** Joins the pair that was joined first in training, until none is left. @param {string[]} parts @param {Map<string, number>} rank */
function merge(parts, rank) {
  for (;;) {
    let best = -1;
    let bestRank = Number.POSITIVE_INFINITY;
    for (let i = 0; i + 1 < parts.length; i++) {
      const found = rank.get(`${parts[i]} ${parts[i + 1]}`);
      if (found !== undefined && found < bestRank) [best, bestRank] = [i, found];
    }
    if (best < 0) return parts;
    parts.splice(best, 2, parts[best] + parts[best + 1]);
  }
}

/** A letter that can be seen for each byte, as GPT-2's files write them: printable ones stand for themselves. */
function byteLetters() {
  const isPrintable = (/** @type {number} */ byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isPrintable(byte) ? byte : next++));
}
