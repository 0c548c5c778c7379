/** BERT and its like (all-MiniLM-L6-v2): the layers up to the one asked for, with the attention of that one. */
import { add, gelu, layerNorm, linear } from "./layers.mjs";

/**
 * @typedef {import("./layers.mjs").Matrix} Matrix
 * @typedef {import("attention-wasm").SafetensorsFile} SafetensorsFile
 */

const kEpsilon = 1e-12;

/**
 * Prefix of the names in the file, or undefined when it is no BERT.
 * @param {SafetensorsFile} file
 */
export function bertPrefix(file) {
  const name = file.names.find((candidate) => candidate.endsWith("embeddings.word_embeddings.weight"));
  return name?.slice(0, -"embeddings.word_embeddings.weight".length);
}

/**
 * Weights [heads, tokens, tokens] of one layer.
 * @param {import("attention-wasm").Attention} attn
 * @param {SafetensorsFile} file
 * @param {number[]} ids
 * @param {{ layer: number, numHeads: number, epsilon?: number | undefined }} options
 */
export async function bertAttention(attn, file, ids, { layer: wanted, numHeads, epsilon = kEpsilon }) {
  const prefix = bertPrefix(file) ?? "";
  const read = async (/** @type {string} */ name) => /** @type {Matrix} */ (await file.read(prefix + name, { dtype: "float32" }));
  const row = async (/** @type {string} */ name, /** @type {number} */ first) =>
    /** @type {Matrix} */ (await file.read(prefix + name, { dtype: "float32", rows: { first, count: 1 } }));
  const norm = async (/** @type {Matrix} */ x, /** @type {string} */ name) =>
    layerNorm(x, await read(`${name}.weight`), await read(`${name}.bias`), epsilon);

  // Vectors of the words, of their positions, and of the first sentence: rows, not whole tables.
  const sentence = await row("embeddings.token_type_embeddings.weight", 0);
  const width = sentence.data.length;
  const sum = new Float32Array(ids.length * width);
  for (const [t, id] of ids.entries()) {
    const word = await row("embeddings.word_embeddings.weight", id);
    const position = await row("embeddings.position_embeddings.weight", t);
    for (let i = 0; i < width; i++) sum[t * width + i] = word.data[i] + position.data[i] + sentence.data[i];
  }
  let x = await norm({ data: sum, shape: [ids.length, width] }, "embeddings.LayerNorm");

  for (let index = 0; ; index++) {
    const name = `encoder.layer.${index}`;
    const layer = attn.createMultiHeadAttention({ numHeads, weights: await file.readAll({ prefix: `${prefix}${name}.attention.` }) });
    try {
      const { output, weights } = layer.forward(x, { returnWeights: index === wanted });
      if (index === wanted) return /** @type {Matrix} */ (weights);
      x = await norm(add(x, /** @type {Matrix} */ (output)), `${name}.attention.output.LayerNorm`);
    } finally {
      layer.dispose();
    }
    const inner = linear(x, await read(`${name}.intermediate.dense.weight`), await read(`${name}.intermediate.dense.bias`), "out-in");
    const outer = linear(gelu(inner, "erf"), await read(`${name}.output.dense.weight`), await read(`${name}.output.dense.bias`), "out-in");
    x = await norm(add(x, outer), `${name}.output.LayerNorm`);
  }
}
