/**
 * One sentence through attn.selfAttention, and every stage of it with its name, formula and shape. The Node example prints
 * these, the page draws them, record.mjs keeps them: none of them computes attention itself.
 *
 * @typedef {"input" | "query" | "key" | "value" | "scores" | "scaledScores" | "maskedScores" | "weights" | "context" | "joined" | "output"} StageName
 *
 * @typedef {object} Stage
 * @property {StageName} name
 * @property {number[]} shape          [numHeads, seqLen, width] when perHead, else [seqLen, width]
 * @property {Float32Array} data
 *
 * @typedef {object} Run
 * @property {string} sentence
 * @property {import("./tokenize.mjs").Token[]} tokens
 * @property {number} numHeads
 * @property {number} headDim
 * @property {boolean} causal
 * @property {Record<StageName, Stage>} stages
 * @property {number} milliseconds     what the call of the library took
 *
 * @typedef {object} StageText
 * @property {number} step             1 to 7; 0 for the input
 * @property {string} title
 * @property {string} formula
 * @property {string} hint             what to look for
 * @property {boolean} perHead
 */
import { embed, kEmbedDim, kWordDim, weightsFor } from "./model.mjs";
import { kMaxTokens, tokenize } from "./tokenize.mjs";
import { nearestWords } from "./word-table.mjs";

/** @type {Record<StageName, StageText>} in the order of the calculation */
export const kStages = {
  input: {
    step: 0,
    title: "Input",
    formula: "X",
    perHead: false,
    hint: "One row per word: 100 numbers say what the word means, the last 28 say where it stands.",
  },
  query: {
    step: 1,
    title: "Query",
    formula: "Q = X·Wqᵀ + bq",
    perHead: true,
    hint: "What each word looks for.",
  },
  key: {
    step: 1,
    title: "Key",
    formula: "K = X·Wkᵀ + bk",
    perHead: true,
    hint: "What each word can be found by.",
  },
  value: {
    step: 1,
    title: "Value",
    formula: "V = X·Wvᵀ",
    perHead: true,
    hint: "What each word hands on when it is looked at.",
  },
  scores: {
    step: 2,
    title: "Scores",
    formula: "S = Q·Kᵀ",
    perHead: true,
    hint: "Every query meets every key: large and positive where the two point the same way.",
  },
  scaledScores: {
    step: 3,
    title: "Scaled scores",
    formula: "S / √d",
    perHead: true,
    hint: "The same picture, smaller numbers: without this, wider heads would always be surer of themselves.",
  },
  maskedScores: {
    step: 3,
    title: "Masked scores",
    formula: "hidden → −∞",
    perHead: true,
    hint: "With causal on, a word cannot see the words after it: their scores are minus infinity.",
  },
  weights: {
    step: 4,
    title: "Weights",
    formula: "P = softmax(S / √d)",
    perHead: true,
    hint: "Each row becomes shares that sum to 1: differences between scores turn into ratios between weights.",
  },
  context: {
    step: 5,
    title: "Weighted sum",
    formula: "C = P·V",
    perHead: true,
    hint: "Each word collects the values of the words it looks at, each by its weight.",
  },
  joined: {
    step: 6,
    title: "Joined heads",
    formula: "concat(C₁ … Cₕ)",
    perHead: false,
    hint: "The results of all heads side by side: each head fills its own columns.",
  },
  output: {
    step: 7,
    title: "Output projection",
    formula: "Y = concat(C)·Woᵀ",
    perHead: false,
    hint: "Back in the space of the word vectors: compare a row with the input, it now carries what the word looked at.",
  },
};

/**
 * @param {import("attention-wasm").Attention} attn
 * @param {import("./word-table.mjs").WordTable} table
 * @param {string} sentence
 * @param {{ numHeads: number, causal: boolean }} options
 * @returns {Run}
 */
export function runSentence(attn, table, sentence, { numHeads, causal }) {
  const tokens = tokenize(sentence, table);
  if (tokens.length === 0) throw new Error("There is no word in the sentence: type at least one.");
  if (tokens.length > kMaxTokens) {
    throw new Error(`The sentence has ${tokens.length} words and signs; at most ${kMaxTokens} can be shown.`);
  }
  const seqLen = tokens.length;
  const square = [kEmbedDim, kEmbedDim];
  const { wq, wk, wv, wo, bq, bk } = weightsFor(numHeads, table);
  const input = { data: embed(tokens, table), shape: [seqLen, kEmbedDim] };
  const started = performance.now();
  const { output, steps } = attn.selfAttention(
    input,
    {
      wq: { data: wq, shape: square },
      bq: { data: bq, shape: [kEmbedDim] },
      wk: { data: wk, shape: square },
      bk: { data: bk, shape: [kEmbedDim] },
      wv: { data: wv, shape: square },
      wo: { data: wo, shape: square },
    },
    { numHeads, causal, trace: true },
  );
  const milliseconds = performance.now() - started;
  if (!steps) throw new Error("selfAttention: trace: true gave no steps");
  /** @type {[StageName, { data: Float32Array, shape: readonly number[] }][]} */
  const parts = [
    ["input", input],
    ["query", steps.query],
    ["key", steps.key],
    ["value", steps.value],
    ["scores", steps.scores],
    ["scaledScores", steps.scaledScores],
    ["maskedScores", steps.maskedScores],
    ["weights", steps.weights],
    ["context", splitHeads(steps.context, numHeads, seqLen)],
    ["joined", steps.context],
    ["output", output],
  ];
  const stages = /** @type {Record<StageName, Stage>} */ (
    Object.fromEntries(
      parts.map(([name, part]) => {
        const rows = kStages[name].perHead ? [numHeads, seqLen] : [seqLen];
        const width = part.data.length / (kStages[name].perHead ? numHeads * seqLen : seqLen);
        return [name, { name, shape: [...rows, width], data: part.data }];
      }),
    )
  );
  return { sentence, tokens, numHeads, headDim: kEmbedDim / numHeads, causal, stages, milliseconds };
}

/**
 * The words of the table nearest to the output of one token: what the word means once it has looked around.
 * @param {Run} run
 * @param {import("./word-table.mjs").WordTable} table
 * @param {number} row
 * @returns {string[]} nearest first
 */
export function nearestToOutput(run, table, row) {
  const { data } = run.stages.output;
  return nearestWords(table, data.subarray(row * kEmbedDim, row * kEmbedDim + kWordDim), 3);
}

/**
 * [seqLen, numHeads · headDim] → [numHeads, seqLen, headDim]: the same numbers in another order, before the heads were joined.
 * @param {{ data: Float32Array }} joined
 * @param {number} numHeads
 * @param {number} seqLen
 */
function splitHeads(joined, numHeads, seqLen) {
  const headDim = joined.data.length / (numHeads * seqLen);
  const data = new Float32Array(joined.data.length);
  for (let head = 0; head < numHeads; head++) {
    for (let row = 0; row < seqLen; row++) {
      const from = (row * numHeads + head) * headDim;
      data.set(joined.data.subarray(from, from + headDim), (head * seqLen + row) * headDim);
    }
  }
  return { data, shape: [numHeads, seqLen, headDim] };
}
