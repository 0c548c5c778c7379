/** GPT-2: the layers up to the one asked for, with the attention of that one. */
import { add, gelu, layerNorm, linear } from "./layers.mjs";

/**
 * @typedef {import("./layers.mjs").Matrix} Matrix
 * @typedef {import("attention-wasm").SafetensorsFile} SafetensorsFile
 */

const kEpsilon = 1e-5;

/**
 * Prefix of the names in the file, or undefined when it is no GPT-2.
 * @param {SafetensorsFile} file
 */
export function gpt2Prefix(file) {
  const name = file.names.find((candidate) => candidate === "wte.weight" || candidate.endsWith(".wte.weight"));
  return name?.slice(0, -"wte.weight".length);
}

/**
 * Weights [heads, tokens, tokens] of one layer.
 * @param {import("attention-wasm").Attention} attn
 * @param {SafetensorsFile} file
 * @param {number[]} ids
 * @param {{ layer: number, numHeads: number, epsilon?: number | undefined }} options
 */
export async function gpt2Attention(attn, file, ids, { layer: wanted, numHeads, epsilon = kEpsilon }) {
  const prefix = gpt2Prefix(file) ?? "";
  const read = async (/** @type {string} */ name) => /** @type {Matrix} */ (await file.read(prefix + name, { dtype: "float32" }));
  const row = async (/** @type {string} */ name, /** @type {number} */ first) =>
    /** @type {Matrix} */ (await file.read(prefix + name, { dtype: "float32", rows: { first, count: 1 } }));
  const norm = async (/** @type {Matrix} */ x, /** @type {string} */ name) =>
    layerNorm(x, await read(`${name}.weight`), await read(`${name}.bias`), epsilon);

  const rows = [];
  for (const [t, id] of ids.entries()) rows.push(add(await row("wte.weight", id), await row("wpe.weight", t)));
  const width = rows[0].data.length;
  const start = new Float32Array(ids.length * width);
  for (const [t, { data }] of rows.entries()) start.set(data, t * width);
  /** @type {Matrix} */
  let x = { data: start, shape: [ids.length, width] };

  for (let index = 0; ; index++) {
    const name = `h.${index}`;
    const layer = attn.createMultiHeadAttention({
      numHeads,
      weights: await file.readAll({ prefix: `${prefix}${name}.attn.c_` }).then(withC),
    });
    try {
      const { output, weights } = layer.forward(await norm(x, `${name}.ln_1`), { causal: true, returnWeights: index === wanted });
      if (index === wanted) return /** @type {Matrix} */ (weights);
      x = add(x, /** @type {Matrix} */ (output));
    } finally {
      layer.dispose();
    }
    const inner = linear(
      await norm(x, `${name}.ln_2`),
      await read(`${name}.mlp.c_fc.weight`),
      await read(`${name}.mlp.c_fc.bias`),
      "in-out",
    );
    x = add(x, linear(gelu(inner, "tanh"), await read(`${name}.mlp.c_proj.weight`), await read(`${name}.mlp.c_proj.bias`), "in-out"));
  }
}

/**
 * The names from "c_" on: files hold the causal mask beside them, a megabyte for each layer that need not be read.
 * @template T
 * @param {Record<string, T>} tensors
 */
function withC(tensors) {
  return Object.fromEntries(Object.entries(tensors).map(([name, value]) => [`c_${name}`, value]));
}
