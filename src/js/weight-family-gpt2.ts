/** GPT-2: `c_attn` and `c_proj`, matrices [in, out]. */
import { cutInThree } from "./weight-family-fused.js";
import type { WeightFamily } from "./weight-family.js";

export const gpt2Family: WeightFamily = {
  title: "GPT-2",
  wanted: ["c_attn.weight [E, 3E]", "c_proj.weight [E, E]", "c_attn.bias", "c_proj.bias"],
  // The causal mask, which files hold as a buffer.
  ignored: /^(masked_)?bias$/,
  fits: (names) => names.has("c_attn.weight"),
  read(names, layout = "in-out") {
    return {
      ...cutInThree(names.matrix("c_attn.weight", layout), names.vector("c_attn.bias")),
      output: names.matrix("c_proj.weight", layout),
      outputBias: names.vector("c_proj.bias"),
    };
  },
};
