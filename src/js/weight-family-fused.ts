/** Query, key and value in one matrix: three equal parts of its outputs. */
import { fail, formatShape } from "./errors.js";
import { sliceOutputs, sliceVector, type LayerParts, type WeightMatrix, type WeightVector } from "./layer-weights.js";

/** Cuts a fused matrix, and its bias if there is one, into query, key and value. */
export function cutInThree(fused: WeightMatrix, bias: WeightVector | undefined): Omit<LayerParts, "output"> {
  const width = fused.outDim / 3;
  if (!Number.isInteger(width)) {
    fail(
      "shape",
      fused.operand.argument,
      "3 · embedDim outputs (query, key, value)",
      `${fused.outDim} (shape ${formatShape(fused.operand.shape)})`,
    );
  }
  return {
    query: sliceOutputs(fused, 0, width),
    key: sliceOutputs(fused, width, width),
    value: sliceOutputs(fused, 2 * width, width),
    ...cutBias(bias, width, width, width),
  };
}

/** Cuts a fused bias. */
export function cutBias(
  bias: WeightVector | undefined,
  query: number,
  key: number,
  value: number,
): Pick<LayerParts, "queryBias" | "keyBias" | "valueBias"> {
  if (bias === undefined) return {};
  const wanted = query + key + value;
  if (bias.values.length !== wanted)
    fail("shape", bias.argument, `${wanted} elements (query ${query} + key ${key} + value ${value})`, String(bias.values.length));
  return {
    queryBias: sliceVector(bias, 0, query),
    keyBias: sliceVector(bias, query, key),
    valueBias: sliceVector(bias, query + key, value),
  };
}
