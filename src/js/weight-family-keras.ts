/** Keras and TensorFlow.js, `MultiHeadAttention`: kernels [embed, heads, dim], and [heads, dim, embed] for the output. */
import { fail, formatShape } from "./errors.js";
import { matrixOf, type WeightMatrix } from "./layer-weights.js";
import type { NamedWeights, WeightFamily } from "./weight-family.js";

export const kerasFamily: WeightFamily = {
  title: "Keras, TensorFlow.js",
  wanted: [
    "query/kernel [embed, heads, dim]",
    "key/kernel",
    "value/kernel",
    "attention_output/kernel [heads, dim, embed]",
    "the same names with /bias",
  ],
  ignored: /^$/,
  fits: (names) => names.has("query.kernel"),
  read(names) {
    return {
      query: kernel(names, "query.kernel", 1),
      key: kernel(names, "key.kernel", 1),
      value: kernel(names, "value.kernel", 1),
      output: kernel(names, "attention_output.kernel", 2),
      queryBias: names.vector("query.bias"),
      keyBias: names.vector("key.bias"),
      valueBias: names.vector("value.bias"),
      outputBias: names.vector("attention_output.bias"),
    };
  },
};

/** A kernel of three axes, of which the first `inAxes` are inputs. */
function kernel(names: NamedWeights, name: string, inAxes: number): WeightMatrix {
  const { operand, type } = names.weight(name);
  const { shape } = operand;
  if (shape.length !== 3)
    fail("shape", operand.argument, inAxes === 1 ? "[embed, heads, dim]" : "[heads, dim, embed]", `shape ${formatShape(shape)}`);
  const rows = inAxes === 1 ? shape[0]! : shape[0]! * shape[1]!;
  const columns = inAxes === 1 ? shape[1]! * shape[2]! : shape[2]!;
  return matrixOf(operand, type, "in-out", rows, columns);
}
