/** From the text on the command line to token ids, with the vocabulary that stands beside the model. */
import { bytePair } from "./byte-pair.mjs";
import { textBeside } from "./files.mjs";
import { wordPiece } from "./wordpiece.mjs";

/**
 * @typedef {{ encode(text: string): number[], label(id: number): string }} Tokenizer
 */

/**
 * The tokenizer of the files beside a model; undefined when there is no vocabulary.
 * @param {string} path
 * @param {"bert" | "gpt2"} family
 * @returns {Promise<Tokenizer | undefined>}
 */
async function tokenizerBeside(path, family) {
  const whole = await textBeside(path, "tokenizer.json");
  const model = whole === undefined ? undefined : JSON.parse(whole).model;
  if (family === "bert") {
    const list = await textBeside(path, "vocab.txt");
    const vocabulary =
      list !== undefined
        ? new Map(
            list
              .split(/\r?\n/)
              .filter(Boolean)
              .map((word, id) => [word, id]),
          )
        : model && new Map(Object.entries(model.vocab));
    if (vocabulary === undefined) return undefined;
    const config = await textBeside(path, "tokenizer_config.json");
    return wordPiece(vocabulary, { lowerCase: config === undefined || JSON.parse(config).do_lower_case !== false });
  }
  const list = await textBeside(path, "vocab.json");
  const merges = await textBeside(path, "merges.txt");
  if (list !== undefined && merges !== undefined) {
    return bytePair(
      new Map(Object.entries(JSON.parse(list))),
      merges.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#version")),
    );
  }
  if (model === undefined) return undefined;
  const pairs = model.merges.map((/** @type {string | string[]} */ pair) => (typeof pair === "string" ? pair : pair.join(" ")));
  return bytePair(new Map(Object.entries(model.vocab)), pairs);
}

/**
 * Ids and labels of a text; a text of numbers alone is taken as ids.
 * @param {string} path
 * @param {"bert" | "gpt2"} family
 * @param {string} text
 */
export async function tokensOf(path, family, text) {
  const tokenizer = await tokenizerBeside(path, family);
  const isIds = /^\s*\d+([\s,]+\d+)*\s*$/.test(text);
  if (!isIds && tokenizer === undefined) {
    const wanted = family === "bert" ? "vocab.txt or tokenizer.json" : "vocab.json with merges.txt, or tokenizer.json";
    throw new Error(`there is no vocabulary beside the file: put ${wanted} there, or give token ids instead of a text.`);
  }
  const ids = isIds
    ? text
        .trim()
        .split(/[\s,]+/)
        .map(Number)
    : /** @type {Tokenizer} */ (tokenizer).encode(text);
  if (ids.length === 0) throw new Error("the text has no tokens.");
  return { ids, labels: ids.map((id) => tokenizer?.label(id) ?? String(id)) };
}
