/** PyTorch's `torch.nn.MultiheadAttention`. */
import { cutBias, cutInThree } from "./weight-family-fused.js";
import type { WeightFamily } from "./weight-family.js";

export const pytorchFamily: WeightFamily = {
  title: "PyTorch's nn.MultiheadAttention",
  wanted: [
    "in_proj_weight [3E, E] (or q_proj_weight, k_proj_weight, v_proj_weight)",
    "out_proj.weight",
    "in_proj_bias",
    "out_proj.bias",
    "bias_k",
    "bias_v",
  ],
  ignored: /^$/,
  fits: (names) => names.has("in_proj_weight") || names.has("q_proj_weight"),
  read(names, layout = "out-in") {
    const bias = names.vector("in_proj_bias");
    const projections = names.has("in_proj_weight")
      ? cutInThree(names.matrix("in_proj_weight", layout), bias)
      : (() => {
          const query = names.matrix("q_proj_weight", layout);
          const key = names.matrix("k_proj_weight", layout);
          const value = names.matrix("v_proj_weight", layout);
          return { query, key, value, ...cutBias(bias, query.outDim, key.outDim, value.outDim) };
        })();
    return {
      ...projections,
      output: names.matrix("out_proj.weight", layout),
      outputBias: names.vector("out_proj.bias"),
      extraKey: names.vector("bias_k"),
      extraValue: names.vector("bias_v"),
    };
  },
};
