/** Hugging Face's BERT and its like: `self.query`, `self.key`, `self.value`, `output.dense`; in their Vision Transformers `attention.query`, …. */
import type { WeightFamily } from "./weight-family.js";

/** Where query, key and value stand below the attention module. */
const PLACES = ["self.", "attention.", ""];

export const bertFamily: WeightFamily = {
  title: "BERT",
  wanted: [
    "self.query.weight (or attention.query.weight, query.weight), the same for key and value",
    "output.dense.weight",
    "the same names with .bias",
  ],
  // The norm after the residual connection.
  ignored: /^output\.LayerNorm\.(weight|bias|gamma|beta)$/,
  fits: (names) => PLACES.some((place) => names.has(`${place}query.weight`)),
  read(names, layout = "out-in") {
    const place = PLACES.find((candidate) => names.has(`${candidate}query.weight`))!;
    return {
      query: names.matrix(`${place}query.weight`, layout),
      key: names.matrix(`${place}key.weight`, layout),
      value: names.matrix(`${place}value.weight`, layout),
      output: names.matrix("output.dense.weight", layout),
      queryBias: names.vector(`${place}query.bias`),
      keyBias: names.vector(`${place}key.bias`),
      valueBias: names.vector(`${place}value.bias`),
      outputBias: names.vector("output.dense.bias"),
    };
  },
};
