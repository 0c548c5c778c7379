/** Vision Transformers (timm, DINO): `qkv` and `proj`. */
import { cutInThree } from "./weight-family-fused.js";
import type { WeightFamily } from "./weight-family.js";

export const vitFamily: WeightFamily = {
  title: "Vision Transformer",
  wanted: ["qkv.weight [3E, E]", "proj.weight", "qkv.bias", "proj.bias"],
  ignored: /^$/,
  fits: (names) => names.has("qkv.weight"),
  read(names, layout = "out-in") {
    return {
      ...cutInThree(names.matrix("qkv.weight", layout), names.vector("qkv.bias")),
      output: names.matrix("proj.weight", layout),
      outputBias: names.vector("proj.bias"),
    };
  },
};
