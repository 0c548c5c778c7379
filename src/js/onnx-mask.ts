/** ONNX's attn_mask: any rank up to 4, boolean or added, and possibly shorter than the keys. */
import { describeValue, fail, formatShape } from "./errors.js";
import { elementsOf } from "./onnx-tensors.js";
import { readAnyTensor, type Operand } from "./operands.js";
import { flatten, type Tensor } from "./tensor.js";

/** float16's -Infinity. */
const HALF_MINUS_INFINITY = 0xfc00;

/** The mask as the options of `scaledDotProductAttention` want it: one of the two. */
export interface MaskOptions {
  mask?: Tensor<Uint8Array>;
  bias?: Tensor | Tensor<Uint16Array>;
}

/**
 * Reads `attn_mask` and checks that it broadcasts to `full` = [batch, heads, queries, keys] (NumPy's rule, right-aligned). A last axis that is shorter
 * than the keys, but longer than 1, is padded with "masked": the keys beyond it are hidden.
 */
export function readMask(value: unknown, argument: string, full: readonly number[]): MaskOptions {
  const operand = readAnyTensor(withBytes(value, argument), argument);
  const { shape } = operand;
  const keys = full[3]!;
  const rank = shape.length;
  let fits = rank >= 1 && rank <= 4;
  for (let axis = 0; axis < rank && fits; axis++) {
    const size = shape[axis]!;
    const wanted = full[4 - rank + axis]!;
    fits = size === 1 || size === wanted || (axis === rank - 1 && size > 1 && size < wanted);
  }
  if (!fits)
    fail(
      "shape",
      argument,
      `a shape of rank 1 to 4 that broadcasts to ${formatShape(full)} (its last axis may be shorter)`,
      formatShape(shape),
    );

  const last = shape[rank - 1]!;
  const length = last > 1 && last < keys ? keys : last;
  const padded = Array.from(shape);
  padded[rank - 1] = length;
  if (operand.dtype === "uint8") {
    const bytes = (operand.buffer === undefined ? operand.data : operand.buffer.data) as Uint8Array;
    return {
      mask: { data: length === last ? bytes : widened(bytes, new Uint8Array(rows(operand) * length), last, length), shape: padded },
    };
  }
  const elements = elementsOf(operand);
  if (elements instanceof Uint16Array) {
    const data =
      length === last ? elements : widened(elements, new Uint16Array(rows(operand) * length).fill(HALF_MINUS_INFINITY), last, length);
    return { bias: { data, shape: padded, dtype: "float16" } };
  }
  return {
    bias: {
      data: length === last ? elements : widened(elements, new Float32Array(rows(operand) * length).fill(-Infinity), last, length),
      shape: padded,
    },
  };
}

/** Booleans as bytes: in nested arrays, or as the data of a tensor. */
function withBytes(value: unknown, argument: string): unknown {
  if (Array.isArray(value)) return flatten(value, argument);
  if (typeof value !== "object" || value === null) return value;
  const { data, shape, dims } = value as { data?: unknown; shape?: unknown; dims?: unknown };
  if (!Array.isArray(data)) return value;
  if (data.some((element) => typeof element !== "boolean"))
    fail("dtype", `${argument}.data`, "a Uint8Array, booleans, or a Float32Array", describeValue(data));
  return { data: Uint8Array.from(data, Number), shape: shape ?? dims };
}

function rows(operand: Operand): number {
  return operand.elements / operand.shape[operand.shape.length - 1]!;
}

/** Copies rows of `from` elements to the beginning of rows of `to` elements. */
function widened<Data extends Uint8Array | Uint16Array | Float32Array>(source: Data, target: Data, from: number, to: number): Data {
  for (let row = 0; row * from < source.length; row++) target.set(source.subarray(row * from, (row + 1) * from), row * to);
  return target;
}
