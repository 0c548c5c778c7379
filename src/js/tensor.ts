/** Tensors as callers write and receive them. How arguments are read and checked: operands.ts. */
import { describeValue, fail, formatShape } from "./errors.js";
import { countElements } from "./sizes.js";

/**
 * The data of a `Float16Array`, described by its shape only: TypeScript libraries and engines without that class accept this package as well.
 */
export interface Float16Data {
  readonly [Symbol.toStringTag]: "Float16Array";
  readonly BYTES_PER_ELEMENT: number;
  readonly buffer: ArrayBufferLike;
  readonly byteLength: number;
  readonly byteOffset: number;
  readonly length: number;
  [index: number]: number;
}

/** Element types by name. `"float16"` data is a `Float16Array`, or a `Uint16Array` of the bits. */
export type DType = "float32" | "float16";

/**
 * A tensor: elements in row-major order (the last axis is contiguous) and the size of each axis. Made by {@link tensor}, or written as an object.
 *
 * @typeParam Data - `Float32Array` unless said otherwise; `Uint8Array` for masks.
 */
export interface Tensor<Data = Float32Array> {
  data: Data;
  shape: number[];
  /** Only where `data` does not say it: `"float16"` for a `Uint16Array` of float16 bits. */
  dtype?: DType;
}

/** A tensor of numbers as results have it: float32, or float16 where the query was float16. */
export type FloatTensor = Tensor<Float32Array> | Tensor<Uint16Array> | Tensor<Float16Data>;

/**
 * Anything with `data` and `shape` or `dims` is accepted as a tensor of numbers: those of this package, of onnxruntime-web, of transformers.js.
 * `dtype` (or onnxruntime's `type`) `"float16"` is needed only where `data` is a `Uint16Array` of float16 bits.
 */
export type TensorLike =
  | { readonly data: FloatData; readonly shape: readonly number[]; readonly dtype?: string }
  | { readonly data: FloatData; readonly dims: readonly number[]; readonly type?: string };

/** What the elements of a tensor of numbers can be kept in. */
export type FloatData = Float32Array | Uint16Array | Float16Data;

/** Numbers in arrays in arrays, all of one depth and equally long: `[[1, 2], [3, 4]]`. */
export type NestedNumbers = readonly number[] | readonly NestedNumbers[];
/** Truth values in arrays in arrays. */
export type NestedBooleans = readonly boolean[] | readonly NestedBooleans[];

/** True for a `Float16Array`, of any realm, without needing the class. */
export function isFloat16Array(value: unknown): value is Float16Data {
  return ArrayBuffer.isView(value) && (value as unknown as Float16Data)[Symbol.toStringTag] === "Float16Array";
}

/**
 * Makes a tensor.
 *
 * ```ts
 * tensor([[1, 2], [3, 4]]);                        // shape [2, 2], float32
 * tensor(new Float32Array(6), [2, 3]);             // the array is taken as it is, not copied
 * tensor([[true, false]]);                         // a mask: Uint8Array, 1 = attend
 * tensor(bits, [2, 3], { dtype: "float16" });      // Uint16Array of float16 bits
 * ```
 *
 * @param data - A `Float32Array`, `Float16Array`, `Uint16Array` (with `dtype: "float16"`) or `Uint8Array` (a mask) is taken as it is, without a copy.
 *   A `Float64Array` is rounded to float32. Arrays of numbers, nested or not, become float32; arrays of booleans become a mask.
 * @param shape - Size of each axis; their product is the number of elements. Default: the shape of the nested arrays, or one axis.
 * @param options - `dtype`: `"float16"` says that a `Uint16Array` holds float16 bits.
 * @returns A new object that holds `data`.
 * @throws AttentionError `"shape"` for ragged arrays or a shape of another number of elements, `"dtype"` for elements of any other kind.
 */
export function tensor(data: Uint16Array, shape: readonly number[] | undefined, options: { dtype: "float16" }): Tensor<Uint16Array>;
export function tensor(data: Uint8Array | NestedBooleans, shape?: readonly number[]): Tensor<Uint8Array>;
export function tensor(data: Float32Array | Float64Array | NestedNumbers, shape?: readonly number[]): Tensor<Float32Array>;
export function tensor(data: Float16Data, shape?: readonly number[]): Tensor<Float16Data>;
export function tensor(
  data: FloatData | Float64Array | Uint8Array | NestedNumbers | NestedBooleans,
  shape?: readonly number[],
  options?: { dtype?: DType },
): Tensor<unknown> {
  const dtype = options?.dtype;
  if (dtype !== undefined && dtype !== "float16" && dtype !== "float32")
    fail("option", "options.dtype", '"float32" or "float16"', describeValue(dtype));
  if (Array.isArray(data)) {
    if (dtype === "float16") fail("dtype", "data", "a Uint16Array or Float16Array for float16", describeValue(data));
    const nested = flatten(data, "data");
    return { data: nested.data, shape: shape === undefined ? nested.shape : checkedShape(shape, nested.data.length) };
  }
  let kept: FloatData | Uint8Array;
  if (data instanceof Float64Array) kept = Float32Array.from(data);
  else if (data instanceof Float32Array || data instanceof Uint8Array || isFloat16Array(data)) kept = data;
  else if (data instanceof Uint16Array && dtype === "float16") kept = data;
  else {
    const hint = (data as unknown) instanceof Uint16Array ? ' (float16 bits need { dtype: "float16" })' : "";
    fail(
      "dtype",
      "data",
      "a Float32Array, Float64Array, Float16Array, Uint8Array or nested arrays of numbers or booleans",
      describeValue(data) + hint,
    );
  }
  if (dtype !== undefined && (dtype === "float16") !== (kept instanceof Uint16Array || isFloat16Array(kept))) {
    fail("dtype", "data", `${dtype} elements`, describeValue(data));
  }
  const result: Tensor<unknown> = { data: kept, shape: shape === undefined ? [kept.length] : checkedShape(shape, kept.length) };
  if (kept instanceof Uint16Array) result.dtype = "float16";
  return result;
}

function checkedShape(shape: readonly number[], elements: number): number[] {
  const wanted = countElements(shape, "shape");
  if (wanted !== elements) fail("shape", "data", `${wanted} elements (shape ${formatShape(shape)})`, String(elements));
  return Array.from(shape);
}

/** Nested arrays as one typed array and a shape: Float32Array for numbers, Uint8Array for booleans. Throws for ragged arrays and mixed elements. */
export function flatten(nested: readonly unknown[], argument: string): { data: Float32Array | Uint8Array; shape: number[] } {
  const shape: number[] = [];
  for (let level: unknown = nested; Array.isArray(level); level = level[0]) shape.push(level.length);
  let first: unknown = nested;
  while (Array.isArray(first)) first = first[0];
  const elements = shape.reduce((product, size) => product * size, 1);
  const isMask = typeof first === "boolean";
  const data = isMask ? new Uint8Array(elements) : new Float32Array(elements);
  const kind = isMask ? "boolean" : "number";
  let next = 0;
  const fill = (level: unknown, depth: number, path: string): void => {
    if (depth === shape.length) {
      if (typeof level !== kind) fail("dtype", `${argument}${path}`, `a ${kind}`, describeValue(level));
      data[next++] = Number(level);
      return;
    }
    if (!Array.isArray(level) || level.length !== shape[depth]) {
      fail("shape", `${argument}${path}`, `an array of ${shape[depth]} elements, as its neighbours are`, describeValue(level));
    }
    for (let i = 0; i < level.length; i++) fill(level[i], depth + 1, `${path}[${i}]`);
  };
  fill(nested, 0, "");
  return { data, shape };
}
