/** Llama, Qwen, Mistral and their like: `q_proj`, `k_proj`, `v_proj`, `o_proj`, with norms of queries and keys in Qwen3; BART and OPT say `out_proj`. */
import type { WeightFamily } from "./weight-family.js";

export const llamaFamily: WeightFamily = {
  title: "Llama, Qwen, Mistral",
  wanted: [
    "q_proj.weight",
    "k_proj.weight",
    "v_proj.weight",
    "o_proj.weight (or out_proj.weight)",
    "q_proj.bias",
    "k_proj.bias",
    "v_proj.bias",
    "o_proj.bias",
    "q_norm.weight",
    "k_norm.weight",
  ],
  ignored: /^rotary_emb\.inv_freq$/,
  fits: (names) => names.has("q_proj.weight"),
  read(names, layout = "out-in") {
    const output = names.has("out_proj.weight") ? "out_proj" : "o_proj";
    return {
      query: names.matrix("q_proj.weight", layout),
      key: names.matrix("k_proj.weight", layout),
      value: names.matrix("v_proj.weight", layout),
      output: names.matrix(`${output}.weight`, layout),
      queryBias: names.vector("q_proj.bias"),
      keyBias: names.vector("k_proj.bias"),
      valueBias: names.vector("v_proj.bias"),
      outputBias: names.vector(`${output}.bias`),
      queryNorm: names.vector("q_norm.weight"),
      keyNorm: names.vector("k_norm.weight"),
    };
  },
};
