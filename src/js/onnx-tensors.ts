/** Tensors of the ONNX entry: the same elements under another shape, in another order, one after the other. */
import type { AttentionBuffer } from "./buffer.js";
import { numberToHalf } from "./half-bits.js";
import { resultKind, type Operand } from "./operands.js";
import type { Float16Data, FloatTensor, Tensor, TensorLike } from "./tensor.js";

/** A tensor of numbers: float32, or float16 (`Float16Array`, or `Uint16Array` with dtype "float16"). */
export type FloatInput = TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">;

/** The tensor type that an output has by the input that decides its element type: float16 in, float16 out. */
export type OutputLike<Input> = Input extends { readonly data: infer Data }
  ? Data extends Float16Data
    ? Tensor<Float16Data>
    : Data extends Uint16Array
      ? Tensor<Uint16Array>
      : Tensor
  : Tensor;

/** Elements as they are copied: float16 by its bits, whichever class holds them. */
export type Elements = Float32Array | Uint16Array;

/** The elements of an operand, not copied. */
export function elementsOf(operand: Operand): Elements {
  const data = operand.buffer === undefined ? operand.data : operand.buffer.data;
  if (data instanceof Float32Array || data instanceof Uint16Array) return data;
  const half = data as Float16Data;
  return new Uint16Array(half.buffer, half.byteOffset, half.length);
}

/** Elements as a tensor of the class and element type that `like` has. */
export function tensorLike(elements: Elements, like: Operand, shape: number[]): FloatTensor {
  if (elements instanceof Float32Array) return { data: elements, shape };
  if (resultKind(like) === "Uint16Array") return { data: elements, shape, dtype: "float16" };
  const { Float16Array } = globalThis as unknown as {
    Float16Array: new (buffer: ArrayBufferLike, offset: number, length: number) => Float16Data;
  };
  return { data: new Float16Array(elements.buffer, elements.byteOffset, elements.length), shape };
}

/** The operand under another shape of as many elements. */
export function reshaped(operand: Operand, shape: number[]): FloatTensor {
  return tensorLike(elementsOf(operand), operand, shape);
}

/** float32 numbers in the element type of `like`, rounded once. */
export function roundedLike(numbers: Float32Array, like: Operand, shape: number[]): FloatTensor {
  return like.dtype === "float16" ? tensorLike(Uint16Array.from(numbers, numberToHalf), like, shape) : { data: numbers, shape };
}

/** A new array of `length` elements of the same kind. */
function empty(elements: Elements, length: number): Elements {
  return elements instanceof Float32Array ? new Float32Array(length) : new Uint16Array(length);
}

/** [a, b, c, width] → [a, c, b, width]: heads first from positions first, and back. */
export function swapMiddle(elements: Elements, [a, b, c, width]: readonly [number, number, number, number]): Elements {
  const result = empty(elements, elements.length);
  for (let i = 0; i < a; i++) {
    for (let j = 0; j < b; j++) {
      for (let k = 0; k < c; k++) {
        const from = ((i * b + j) * c + k) * width;
        result.set(elements.subarray(from, from + width), ((i * c + k) * b + j) * width);
      }
    }
  }
  return result;
}

/** [rows, m, width] and [rows, n, width] → [rows, m + n, width]; both of one element type. */
export function concatenated(first: Elements, second: Elements, rows: number): Elements {
  const result = empty(second, first.length + second.length);
  const m = rows === 0 ? 0 : first.length / rows;
  const n = rows === 0 ? 0 : second.length / rows;
  for (let row = 0; row < rows; row++) {
    result.set(first.subarray(row * m, (row + 1) * m), row * (m + n));
    result.set(second.subarray(row * n, (row + 1) * n), row * (m + n) + m);
  }
  return result;
}
