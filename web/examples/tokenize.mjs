/**
 * Sentence → tokens, and for each token the word of the table it is looked up as.
 *
 * @typedef {import("./word-table.mjs").WordTable} WordTable
 *
 * @typedef {object} Token
 * @property {string} text           as it is shown
 * @property {string | undefined} word   the table's word whose vector is used; undefined when the table has none that would do
 * @property {"found" | "stand-in" | "unknown"} kind
 */

/** More tokens than this are refused: a picture with more words on its axes could not be read. */
export const kMaxTokens = 256;

// A word with its apostrophes, a number, a picture character, or one other sign. Control characters never become a token:
// they would reach the terminal.
const kToken =
  /\p{L}[\p{L}\p{M}]*(?:'\p{L}+)*|\p{N}+|\p{Extended_Pictographic}(?:\u200d|\ufe0f|\p{Emoji_Modifier}|\p{Extended_Pictographic})*|[\p{P}\p{S}]/gu;

/**
 * The table has no single letters and no apostrophes. These stand in for its gaps; every use is reported.
 * @type {Record<string, string>}
 */
const kStandIns = {
  a: "an",
  i: "me",
  "n't": "not",
  "'s": "is",
  "'re": "are",
  "'m": "am",
  "'ve": "have",
  "'ll": "will",
  "'d": "would",
  "[": "(",
  "]": ")",
  "{": "(",
  "}": ")",
  "…": ".",
  "–": "-",
  "—": "-",
  "“": '"',
  "”": '"',
  "«": '"',
  "»": '"',
};
const kDigits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/** What stands before the n't of can't, won't, shan't. @type {Record<string, string>} */
const kIrregular = { ca: "can", wo: "will", sha: "shall" };
const kIsAfter = /^(?:it|he|she|that|this|what|who|where|here|there|how|when|why|let)$/;
const kEndings = [
  ["ies", "y"],
  ["ied", "y"],
  ["es", ""],
  ["es", "e"],
  ["s", ""],
  ["ing", ""],
  ["ing", "e"],
  ["ed", ""],
  ["ed", "e"],
  ["est", ""],
  ["est", "e"],
  ["er", ""],
  ["er", "e"],
  ["ly", ""],
  ["ness", ""],
  ["our", "or"],
  ["ise", "ize"],
];

/**
 * @param {string} sentence
 * @param {WordTable} table
 * @returns {Token[]}
 */
export function tokenize(sentence, table) {
  const text = sentence.normalize("NFC").replace(/[\u2018\u2019]/g, "'");
  return (text.match(kToken) ?? []).flatMap(splitContraction).map((part) => lookUp(part, table));
}

/**
 * "don't" → "do", "n't"; "it's" → "it", "'s"; "the animal's" stays one word, since that 's is no "is".
 * @param {string} part
 */
function splitContraction(part) {
  const match = /^(.+)(n't|'(?:re|m|ve|ll|d|s))$/iu.exec(part);
  if (!match || (match[2].toLowerCase() === "'s" && !kIsAfter.test(match[1].toLowerCase()))) return [part];
  const verb = match[2].toLowerCase() === "n't" ? (kIrregular[match[1].toLowerCase()] ?? match[1]) : match[1];
  return [verb, match[2]];
}

/**
 * @param {string} text
 * @param {WordTable} table
 * @returns {Token}
 */
function lookUp(text, table) {
  const key = text.toLowerCase();
  if (table.rowOf.has(key)) return { text, word: key, kind: "found" };
  const word = standIns(key).find((candidate) => table.rowOf.has(candidate));
  return { text, word, kind: word === undefined ? "unknown" : "stand-in" };
}

/** @param {string} key @returns {string[]} what may stand in for a word that the table does not have, best first */
function standIns(key) {
  const own = Object.hasOwn(kStandIns, key) ? [kStandIns[key]] : [];
  const number = /^\p{N}+$/u.test(key) ? [kDigits[Number(key)] ?? "number", "number"] : [];
  const stem = key.replace(/'s?$/u, "");
  const roots = kEndings
    .filter(([ending]) => stem.endsWith(ending) && stem.length - ending.length >= 3)
    .map(([ending, instead]) => stem.slice(0, stem.length - ending.length) + instead);
  // "running" → "runn" → "run"
  const undoubled = roots.map((root) => root.replace(/([b-df-hj-np-tv-z])\1$/, "$1"));
  return [...own, ...number, stem, ...roots, ...undoubled];
}
