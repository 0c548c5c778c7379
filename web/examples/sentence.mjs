#!/usr/bin/env node
/**
 * Self-attention of a sentence, step by step, in the terminal: what `npm start` runs once the package is built.
 * The library does the calculation (stages.mjs calls it); this file prints it, and compares it with plain float64 loops.
 */
/**
 * @typedef {import("./stages.mjs").Run} Run
 * @typedef {import("./word-table.mjs").WordTable} WordTable
 */
import { parseArgs } from "node:util";
import { readWordTable } from "./files.mjs";
import { largestDifference, meanOfHeads, rowFacts } from "./matrix.mjs";
import { describeHead, describeHeads, kEmbedDim, kHeadCounts, kPositionDim, kWordDim, weightsFor } from "./model.mjs";
import { selfAttentionFloat64 } from "./reference.mjs";
import { kStages, nearestToOutput, runSentence } from "./stages.mjs";
import { drawMatrix } from "./terminal-matrix.mjs";
import { kMaxTokens } from "./tokenize.mjs";

const kSentence = "the animal did not cross the street because it was too tired";
// Weights are at most 1 and outputs a few units: ten units in the last place of a float32.
const kTolerance = 2e-6;
const kRowSumTolerance = 1e-6;
const kHelp = `Self-attention of a sentence, step by step.

  npm start                                  a sentence that is there already
  npm start -- "any sentence of yours"       up to ${kMaxTokens} words and signs
  npm start -- --heads 8 "..."               number of heads: ${kHeadCounts.join(", ")} (default 4)
  npm start -- --show 2 "..."                the matrix of head 2; "mean" of all heads (default) or "all" of them
  npm start -- --causal "..."                no word sees the words after it
  npm start -- --help                        this text

NO_COLOR=1 turns colours off.`;

async function main() {
  const options = readOptions();
  if (options.help) return console.log(kHelp);
  const { sentence, numHeads, causal } = options;
  const { loadAttention } = await importLibrary();
  const table = await readWordTable();
  const attn = await loadAttention();
  const run = runSentence(attn, table, sentence, { numHeads, causal });

  printSentence(run, table, attn);
  printSteps(run);
  for (const heads of options.show) printMatrix(run, heads);
  const last = run.tokens.length - 1;
  console.log(`Nearest words to the output of "${run.tokens[last].text}": ${nearestToOutput(run, table, last).join(", ")}.\n`);
  printCheck(run, table);
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      heads: { type: "string", default: "4" },
      show: { type: "string", default: "mean" },
      causal: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const numHeads = Number(values.heads);
  if (!kHeadCounts.includes(numHeads)) throw new Error(`--heads: expected one of ${kHeadCounts.join(", ")}, got "${values.heads}"`);
  const every = Array.from({ length: numHeads }, (_, head) => head);
  const one = every[Number(values.show) - 1];
  const show = values.show === "mean" ? [every] : values.show === "all" ? every.map((head) => [head]) : one === undefined ? [] : [[one]];
  if (show.length === 0) throw new Error(`--show: expected mean, all, or a head from 1 to ${numHeads}, got "${values.show}"`);
  return { sentence: positionals.join(" ").trim() || kSentence, numHeads, show, causal: values.causal, help: values.help };
}

async function importLibrary() {
  try {
    return await import("attention-wasm");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Error("the package is not built yet: run `npm start` in the folder of the repository, it builds what is missing.");
  }
}

/** @param {Run} run @param {WordTable} table @param {import("attention-wasm").Attention} attn */
function printSentence(run, table, attn) {
  const named = (/** @type {string} */ kind) => [
    ...new Map(run.tokens.filter((token) => token.kind === kind).map((token) => [token.text, token])).values(),
  ];
  console.log(bold(run.tokens.map((token) => token.text).join(" ")));
  console.log(
    `${run.tokens.length} words and signs, looked up in ${table.words.length} word vectors of ${kWordDim} numbers; ` +
      `computed in ${run.milliseconds.toFixed(1)} ms (WebAssembly, ${attn.variant}).`,
  );
  const standIns = named("stand-in").map((token) => `"${token.text}" → "${token.word}"`);
  if (standIns.length > 0) console.log(`Not in the table, so the vector of a near word is used: ${standIns.join(", ")}.`);
  const unknown = named("unknown").map((token) => `"${token.text}"`);
  if (unknown.length > 0) {
    console.log(`Unknown, so a vector made from the letters alone is used, which resembles no word: ${unknown.join(", ")}.`);
  }
  console.log(`The weights are made by hand, not trained, and the same every time: ${describeHeads(run.numHeads)}.\n`);
}

/** Each of the seven steps: name, formula, shape, and a few numbers of the last word. @param {Run} run */
function printSteps(run) {
  const row = run.tokens.length - 1;
  const head = run.numHeads === 1 ? 0 : run.numHeads - 1;
  console.log(`${bold("The steps")}   numbers: the row of "${run.tokens[row].text}", in head ${head + 1} where there are heads`);
  const stagesInOrder = /** @type {[import("./stages.mjs").StageName, import("./stages.mjs").StageText][]} */ (Object.entries(kStages));
  let lastStep = -1;
  for (const [name, { step, title, formula, perHead }] of stagesInOrder) {
    if (name === "maskedScores" && !run.causal) continue;
    const { shape, data } = run.stages[name];
    const width = shape[shape.length - 1];
    const from = ((perHead ? head * run.tokens.length : 0) + row) * width;
    const numbers = Array.from(data.subarray(from, from + Math.min(4, width)), (value) => shortNumber(value).padStart(7)).join(" ");
    const number = step === 0 || step === lastStep ? " " : String(step);
    lastStep = step;
    console.log(
      `${number} ${title.padEnd(18)} ${formula.padEnd(23)} ${`[${shape.join(", ")}]`.padEnd(13)} ${numbers}${width > 4 ? " …" : ""}`.trimEnd(),
    );
  }
  console.log(
    dim(`  X is ${kWordDim} numbers of the word and ${kPositionDim} of its position, ${kEmbedDim} in all; d = ${run.headDim}.\n`),
  );
}

/** @param {Run} run @param {number[]} heads */
function printMatrix(run, heads) {
  const weights = meanOfHeads(run.stages.weights, heads);
  const which =
    heads.length === 1
      ? `head ${heads[0] + 1} of ${run.numHeads}, ${describeHead(heads[0], run.numHeads)}`
      : `mean of ${heads.length} heads`;
  console.log(`${bold("Who looks at whom")}   ${which}${run.causal ? ", causal" : ""}; row = query, column = key, rows sum to 1`);
  const tokens = run.tokens.map((token) => token.text);
  console.log(drawMatrix(weights, tokens, { width: terminalWidth(), colour: useColour(), causal: run.causal }));
  const column = rowFacts(weights, tokens.length - 1);
  const entropy = `entropy ${column.entropy.toFixed(2)} bits of at most ${Math.log2(tokens.length).toFixed(2)}`;
  console.log(`"${tokens.at(-1)}" looks most at "${tokens[column.column]}" (${column.largest.toFixed(3)}); ${entropy}.\n`);
}

/** Compares with float64; a difference beyond the tolerance is a failure of the program, not a remark. @param {Run} run @param {WordTable} table */
function printCheck(run, table) {
  const { stages, numHeads, causal, tokens } = run;
  const expected = selfAttentionFloat64(stages.input.data, weightsFor(numHeads, table), { numHeads, embedDim: kEmbedDim, causal });
  const weights = largestDifference(stages.weights.data, expected.weights);
  const output = largestDifference(stages.output.data, expected.output);
  let sums = 0;
  for (let head = 0; head < numHeads; head++) {
    const one = meanOfHeads(stages.weights, [head]);
    for (let row = 0; row < tokens.length; row++) sums = Math.max(sums, Math.abs(rowFacts(one, row).sum - 1));
  }
  const short = (/** @type {number} */ value) => value.toExponential(1);
  console.log(
    `Against plain float64 loops: weights differ by at most ${short(weights)}, outputs by ${short(output)} (allowed ${short(kTolerance)}); ` +
      `row sums differ from 1 by ${short(sums)} (allowed ${short(kRowSumTolerance)}).`,
  );
  // Written so that NaN fails.
  if (!(weights <= kTolerance && output <= kTolerance && sums <= kRowSumTolerance)) {
    throw new Error("the numbers of the library do not agree with the float64 calculation.");
  }
}

function terminalWidth() {
  return process.stdout.isTTY ? process.stdout.columns : Number(process.env.COLUMNS) || 80;
}

function useColour() {
  return process.stdout.isTTY === true && !process.env.NO_COLOR && process.stdout.getColorDepth() >= 8;
}

/** @param {number} value */
function shortNumber(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "-∞" : "NaN";
  return value.toFixed(Math.abs(value) >= 100 ? 1 : 3);
}

/** @param {string} text @param {number} code */
function style(text, code) {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `\u001b[${code}m${text}\u001b[0m` : text;
}

/** @param {string} text */
function bold(text) {
  return style(text, 1);
}

/** @param {string} text */
function dim(text) {
  return style(text, 2);
}

try {
  await main();
} catch (error) {
  console.error(`sentence: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
