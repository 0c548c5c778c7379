#!/usr/bin/env node
/**
 * The attention of one head of a real model, as a picture in the terminal. The file may be of any size: only the tensors that are needed are read.
 * README.md, section "Attention of a real model", says where to get the files.
 */
import { parseArgs } from "node:util";
import { loadAttention, openSafetensors } from "attention-wasm";
import { bertAttention, bertPrefix } from "./inspect/bert.mjs";
import { fileSource, textBeside } from "./inspect/files.mjs";
import { gpt2Attention, gpt2Prefix } from "./inspect/gpt2.mjs";
import { tokensOf } from "./inspect/tokens.mjs";
import { drawMatrix } from "./terminal-matrix.mjs";

const kHelp = `Attention of one head of a model, as a picture.

  node web/examples/inspect-model.mjs FILE --layer 3 --head 5 "text"

  FILE        a safetensors file of a BERT (such as all-MiniLM-L6-v2) or of GPT-2
  "text"      cut into tokens with the vocabulary beside the file; or token ids: "101 7592 102"
  --layer N   from 0 on; default 0
  --head N    from 0 on, or "mean"; default mean
  --heads N   number of heads, when there is no config.json beside the file that says it
  --help      this text

NO_COLOR=1 turns colours off.`;

/**
 * Everything but the printing.
 * @param {string} path
 * @param {string} text
 * @param {{ layer: number, numHeads?: number | undefined }} options
 */
export async function inspect(path, text, { layer, numHeads: givenHeads }) {
  const source = await fileSource(path);
  try {
    const file = await openSafetensors(source);
    const family = bertPrefix(file) !== undefined ? "bert" : gpt2Prefix(file) !== undefined ? "gpt2" : undefined;
    if (family === undefined) {
      throw new Error(
        `${path} is no BERT (embeddings.word_embeddings.weight) and no GPT-2 (wte.weight): it has ${file.names.slice(0, 8).join(", ")}, …`,
      );
    }
    const configText = await textBeside(path, "config.json");
    const config = configText === undefined ? {} : JSON.parse(configText);
    const numHeads = givenHeads ?? config.num_attention_heads ?? config.n_head;
    if (!Number.isInteger(numHeads) || numHeads < 1)
      throw new Error("the number of heads is not known: put config.json beside the file, or say --heads N.");
    const layers = countLayers(file.names, family);
    if (!Number.isInteger(layer) || layer < 0 || layer >= layers) throw new Error(`--layer: expected 0 to ${layers - 1}, got ${layer}`);

    const { ids, labels } = await tokensOf(path, family, text);
    checkIds(file, family, ids);
    const attn = await loadAttention();
    const epsilon = config.layer_norm_eps ?? config.layer_norm_epsilon;
    const weights = await (family === "bert" ? bertAttention : gpt2Attention)(attn, file, ids, { layer, numHeads, epsilon });
    return { family, weights, ids, labels, layers, numHeads, causal: family === "gpt2" };
  } finally {
    await source.close();
  }
}

/** @param {readonly string[]} names @param {"bert" | "gpt2"} family */
function countLayers(names, family) {
  const pattern = family === "bert" ? /encoder\.layer\.(\d+)\./ : /(?:^|\.)h\.(\d+)\./;
  return 1 + Math.max(-1, ...names.map((name) => Number(pattern.exec(name)?.[1] ?? -1)));
}

/** @param {import("attention-wasm").SafetensorsFile} file @param {"bert" | "gpt2"} family @param {number[]} ids */
function checkIds(file, family, ids) {
  const [words, positions] =
    family === "bert"
      ? [`${bertPrefix(file)}embeddings.word_embeddings.weight`, `${bertPrefix(file)}embeddings.position_embeddings.weight`]
      : [`${gpt2Prefix(file)}wte.weight`, `${gpt2Prefix(file)}wpe.weight`];
  const known = file.info(words)?.shape[0] ?? 0;
  const wrong = ids.find((id) => id >= known);
  if (wrong !== undefined) throw new Error(`token ids: expected numbers below ${known}, got ${wrong}`);
  const most = file.info(positions)?.shape[0] ?? 0;
  if (ids.length > most) throw new Error(`the text has ${ids.length} tokens; the model takes at most ${most}.`);
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      layer: { type: "string", default: "0" },
      head: { type: "string", default: "mean" },
      heads: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const [path, ...words] = positionals;
  if (values.help || path === undefined || words.length === 0) return console.log(kHelp);
  const found = await inspect(path, words.join(" "), {
    layer: Number(values.layer),
    numHeads: values.heads === undefined ? undefined : Number(values.heads),
  });
  const { weights, labels, family, layers, numHeads, causal } = found;
  const head = values.head === "mean" ? undefined : Number(values.head);
  if (head !== undefined && (!Number.isInteger(head) || head < 0 || head >= numHeads)) {
    throw new Error(`--head: expected mean, or 0 to ${numHeads - 1}, got ${values.head}`);
  }
  const size = labels.length * labels.length;
  const matrix = new Float32Array(size);
  for (let h = 0; h < numHeads; h++) {
    if (head !== undefined && h !== head) continue;
    for (let i = 0; i < size; i++) matrix[i] += weights.data[h * size + i] / (head === undefined ? numHeads : 1);
  }
  const which = head === undefined ? `mean of ${numHeads} heads` : `head ${head} of ${numHeads}`;
  console.log(
    `${family === "bert" ? "BERT" : "GPT-2"}, layer ${values.layer} of ${layers}, ${which}; row = query, column = key, rows sum to 1`,
  );
  const width = process.stdout.isTTY ? process.stdout.columns : Number(process.env.COLUMNS) || 80;
  const colour = process.stdout.isTTY === true && !process.env.NO_COLOR && process.stdout.getColorDepth() >= 8;
  console.log(drawMatrix(matrix, labels, { width, colour, causal }));
}

if (process.argv[1] !== undefined && import.meta.url === (await import("node:url")).pathToFileURL(process.argv[1]).href) {
  try {
    await main();
  } catch (error) {
    console.error(`inspect-model: ${/** @type {Error} */ (error).message}`);
    process.exitCode = 1;
  }
}
