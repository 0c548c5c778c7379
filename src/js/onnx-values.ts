/** How the ONNX entry reads what it is given: lists of int64, attributes, and the instance itself. */
import { describeValue, fail } from "./errors.js";
import type { Attention } from "./instance.js";
import { countElements } from "./sizes.js";

/** Integers without a shape. ONNX says int64; no BigInt is needed here, but `BigInt64Array` is accepted. */
export type IntegerData = ArrayLike<number> | ArrayLike<bigint>;

/** A tensor of integers: numbers in (nested) arrays, a bare integer array where one axis is meant, or a tensor of one. */
export type IntegersLike =
  | IntegerData
  | readonly (readonly number[])[]
  | { readonly data: IntegerData; readonly shape: readonly number[] }
  | { readonly data: IntegerData; readonly dims: readonly number[] };

/** A tensor of integers after reading. */
export interface Integers {
  readonly values: readonly number[];
  readonly shape: readonly number[];
}

/** Reads a tensor of integers, each within `low` to `high`. Throws "dtype", "shape" or "option". */
export function readIntegers(value: unknown, argument: string, low: number, high: number): Integers {
  let list = value;
  let shape: ArrayLike<number> | undefined;
  if (isTensor(value)) {
    list = value.data;
    shape = value.shape ?? value.dims;
  } else if (Array.isArray(value) && Array.isArray(value[0])) {
    const width = value[0].length;
    for (const [i, row] of value.entries()) {
      if (!Array.isArray(row) || row.length !== width)
        fail("shape", `${argument}[${i}]`, `an array of ${width} elements, as its neighbours are`, describeValue(row));
    }
    shape = [value.length, width];
    list = value.flat();
  }
  if (!isIntegerList(list))
    fail("dtype", argument, "whole numbers: an Int32Array, a BigInt64Array or an array of numbers", describeValue(list));
  const values = Array.from(list as ArrayLike<unknown>, (element, i) => readInteger(element, `${argument}[${i}]`, low, high));
  if (shape === undefined) return { values, shape: [values.length] };
  const wanted = countElements(shape, argument);
  if (wanted !== values.length)
    fail("shape", argument, `${wanted} elements (shape [${Array.from(shape).join(", ")}])`, describeValue(list));
  return { values, shape: Array.from(shape) };
}

function isTensor(value: unknown): value is { data: unknown; shape?: ArrayLike<number>; dims?: ArrayLike<number> } {
  if (typeof value !== "object" || value === null || !("data" in value)) return false;
  const { shape, dims } = value as { shape?: unknown; dims?: unknown };
  const given = shape ?? dims;
  return typeof given === "object" && given !== null && typeof (given as { length?: unknown }).length === "number";
}

function isIntegerList(list: unknown): boolean {
  if (Array.isArray(list)) return true;
  if (!ArrayBuffer.isView(list)) return false;
  return /^(Big)?(Int|Uint)\d+(Clamped)?Array$/.test((list as unknown as { [Symbol.toStringTag]: string })[Symbol.toStringTag] ?? "");
}

/** A whole number within `low` to `high`; a BigInt counts as the number it is. Throws "dtype" or "option". */
export function readInteger(value: unknown, argument: string, low: number, high: number): number {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (typeof number !== "number") fail("dtype", argument, "a whole number", describeValue(value));
  if (!Number.isInteger(number) || number < low || number > high)
    fail("option", argument, `a whole number from ${low} to ${high}`, describeValue(value));
  return number;
}

/** An int attribute that ONNX uses as a truth value: 0 or 1 (or a boolean). */
export function readFlag(value: unknown, argument: string): boolean {
  if (value === undefined || value === false) return false;
  if (value === true) return true;
  if (typeof value !== "number" && typeof value !== "bigint") fail("dtype", argument, "0 or 1", describeValue(value));
  return readInteger(value, argument, 0, 1) === 1;
}

/** A number of heads: at least 1 where it is given. */
export function readHeads(value: unknown, argument: string): number | undefined {
  return value === undefined ? undefined : readInteger(value, argument, 1, 2 ** 31 - 1);
}

/** Throws unless `attn` is what loadAttention gives. */
export function checkInstance(attn: unknown): asserts attn is Attention {
  if (typeof attn !== "object" || attn === null || typeof (attn as Partial<Attention>).scaledDotProductAttention !== "function") {
    fail("dtype", "attn", "an instance, as loadAttention() gives", describeValue(attn));
  }
}
