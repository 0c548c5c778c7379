/**
 * Weights of a layer as callers give them, read and checked but not copied: where each matrix stands in which tensor, with the distances between its
 * elements. So one tensor can hold several of them (fused projections), in either order of axes. packed-layer.ts brings them into WASM memory.
 */
import { WasmBuffer } from "./buffer.js";
import { describeValue, fail, failWith, formatShape } from "./errors.js";
import { bfloat16ToNumber, halfToNumber } from "./half-bits.js";
import { readTensor, type Operand } from "./operands.js";
import { WeightType } from "./projection-block.js";
import type { TensorLike } from "./tensor.js";
import type { AttentionBuffer } from "./buffer.js";

/** A tensor of weights: float32, float16, or bfloat16 as a `Uint16Array` of the bits with `dtype: "bfloat16"` (what files hold). */
export type WeightLike =
  | TensorLike
  | AttentionBuffer<"float32">
  | AttentionBuffer<"float16">
  | { readonly data: Uint16Array; readonly shape: readonly number[]; readonly dtype: "bfloat16" };

/**
 * The weights of attention with its projections, by this package's names. Matrices are [out, in] as PyTorch stores them, y = x · Wᵀ + b; with
 * `weightLayout: "in-out"` they are [in, out] and y = x · W + b.
 */
export interface AttentionWeights {
  /** [numHeads · headDim, embedDim]: query projection. */
  wq: WeightLike;
  /** [numKvHeads · headDim, keyDim]: key projection. */
  wk: WeightLike;
  /** [numKvHeads · valueDim, valueInputDim]: value projection. */
  wv: WeightLike;
  /** [outputDim, numHeads · valueDim]: output projection. */
  wo: WeightLike;
  /** [numHeads · headDim]; each bias may be left out. */
  bq?: WeightLike | undefined;
  /** [numKvHeads · headDim] */
  bk?: WeightLike | undefined;
  /** [numKvHeads · valueDim] */
  bv?: WeightLike | undefined;
  /** [outputDim] */
  bo?: WeightLike | undefined;
  /** [headDim]: root mean square norm of each head's query before the rotary positions (Qwen3). */
  queryNorm?: WeightLike | undefined;
  /** [headDim]: the same for keys. */
  keyNorm?: WeightLike | undefined;
  /** [numKvHeads · headDim]: one more key that every query sees, the last (PyTorch's `bias_k`). Together with `extraValue`. */
  extraKey?: WeightLike | undefined;
  /** [numKvHeads · valueDim]: its value (PyTorch's `bias_v`). */
  extraValue?: WeightLike | undefined;
}

/** Order of the axes of weight matrices. */
export type WeightLayout = "out-in" | "in-out";

/** A matrix [out, in] inside a tensor; offset and strides count elements. */
export interface WeightMatrix {
  readonly operand: Operand;
  readonly type: number;
  readonly offset: number;
  readonly outDim: number;
  readonly inDim: number;
  readonly outStride: number;
  readonly inStride: number;
}

/** A vector, as float32 in JavaScript: vectors are small. */
export interface WeightVector {
  readonly argument: string;
  readonly values: Float32Array;
}

/** All parts of a layer, by role. */
export interface LayerParts {
  readonly query: WeightMatrix;
  readonly key: WeightMatrix;
  readonly value: WeightMatrix;
  readonly output: WeightMatrix;
  readonly queryBias?: WeightVector | undefined;
  readonly keyBias?: WeightVector | undefined;
  readonly valueBias?: WeightVector | undefined;
  readonly outputBias?: WeightVector | undefined;
  readonly queryNorm?: WeightVector | undefined;
  readonly keyNorm?: WeightVector | undefined;
  readonly extraKey?: WeightVector | undefined;
  readonly extraValue?: WeightVector | undefined;
}

/** Sizes of a layer. */
export interface LayerSizes {
  /** Width of x. */
  readonly embedDim: number;
  /** Width of what keys, and values, are projected from; embedDim for self-attention. */
  readonly keyDim: number;
  readonly valueInputDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  readonly outputDim: number;
}

/** Sizes that a caller names; the others follow from the shapes of the weights. */
export interface GivenSizes {
  readonly embedDim?: number | undefined;
  readonly numHeads: number;
  readonly numKvHeads?: number | undefined;
  readonly headDim?: number | undefined;
  readonly valueDim?: number | undefined;
  readonly kDim?: number | undefined;
  readonly vDim?: number | undefined;
}

/** Reads a tensor of weights: as `readTensor`, and bfloat16. */
export function readWeight(value: unknown, argument: string): { operand: Operand; type: number } {
  const given = value as { data?: unknown; shape?: unknown; dtype?: unknown };
  if (typeof value === "object" && value !== null && given.dtype === "bfloat16" && !(value instanceof WasmBuffer)) {
    if (!(given.data instanceof Uint16Array)) fail("dtype", argument, "a Uint16Array of bfloat16 bits", describeValue(given.data));
    return { operand: readTensor({ data: given.data, shape: given.shape, dtype: "float16" }, argument), type: WeightType.bf16 };
  }
  const operand = readTensor(value, argument);
  return { operand, type: operand.dtype === "float16" ? WeightType.f16 : WeightType.f32 };
}

/** Reads a matrix of two axes. */
export function readMatrix(value: unknown, argument: string, layout: WeightLayout): WeightMatrix {
  const { operand, type } = readWeight(value, argument);
  const { shape } = operand;
  if (shape.length !== 2) fail("shape", argument, layout === "out-in" ? "[out, in]" : "[in, out]", `shape ${formatShape(shape)}`);
  return matrixOf(operand, type, layout, shape[0]!, shape[1]!);
}

/** A matrix that fills a tensor of whatever shape: [rows, columns] after joining axes. */
export function matrixOf(operand: Operand, type: number, layout: WeightLayout, rows: number, columns: number): WeightMatrix {
  return layout === "out-in"
    ? { operand, type, offset: 0, outDim: rows, inDim: columns, outStride: columns, inStride: 1 }
    : { operand, type, offset: 0, outDim: columns, inDim: rows, outStride: 1, inStride: columns };
}

/** Some of a matrix's outputs: a fused projection is cut with this. */
export function sliceOutputs(matrix: WeightMatrix, first: number, count: number): WeightMatrix {
  return { ...matrix, offset: matrix.offset + first * matrix.outStride, outDim: count };
}

/** Reads a vector: all elements of a tensor of whatever shape, as float32. */
export function readVector(value: unknown, argument: string): WeightVector {
  const { operand, type } = readWeight(value, argument);
  const data = (operand.buffer?.data ?? operand.data) as ArrayLike<number>;
  if (type === WeightType.f32) return { argument, values: Float32Array.from(data) };
  if (!(data instanceof Uint16Array)) return { argument, values: Float32Array.from(data) }; // a Float16Array gives numbers
  return { argument, values: Float32Array.from(data, type === WeightType.bf16 ? bfloat16ToNumber : halfToNumber) };
}

/** Part of a vector. */
export function sliceVector(vector: WeightVector, first: number, count: number): WeightVector {
  return { argument: vector.argument, values: vector.values.subarray(first, first + count) };
}

/** Names of {@link AttentionWeights}. */
export const WEIGHT_NAMES: readonly string[] = [
  "wq",
  "wk",
  "wv",
  "wo",
  "bq",
  "bk",
  "bv",
  "bo",
  "queryNorm",
  "keyNorm",
  "extraKey",
  "extraValue",
];

/** Reads weights given by this package's own names. */
export function readOwnNames(weights: Record<string, unknown>, layout: WeightLayout): LayerParts {
  const matrix = (name: string): WeightMatrix => readMatrix(weights[name], `weights.${name}`, layout);
  const vector = (name: string): WeightVector | undefined =>
    weights[name] === undefined ? undefined : readVector(weights[name], `weights.${name}`);
  return {
    query: matrix("wq"),
    key: matrix("wk"),
    value: matrix("wv"),
    output: matrix("wo"),
    queryBias: vector("bq"),
    keyBias: vector("bk"),
    valueBias: vector("bv"),
    outputBias: vector("bo"),
    queryNorm: vector("queryNorm"),
    keyNorm: vector("keyNorm"),
    extraKey: vector("extraKey"),
    extraValue: vector("extraValue"),
  };
}

/** Sizes of the layer, from what is named and from the shapes; throws where they contradict each other. */
export function checkLayer(parts: LayerParts, given: GivenSizes): LayerSizes {
  const { query, key, value, output } = parts;
  const numHeads = readCount(given.numHeads, "options.numHeads");
  const headDim = given.headDim === undefined ? divide(query, numHeads, "numHeads") : readCount(given.headDim, "options.headDim");
  checkOutputs(query, numHeads * headDim, `numHeads ${numHeads} × headDim ${headDim}`);
  const numKvHeads = given.numKvHeads === undefined ? divide(key, headDim, "headDim") : readCount(given.numKvHeads, "options.numKvHeads");
  if (numHeads % numKvHeads !== 0) fail("shape", "options.numKvHeads", `a divisor of numHeads ${numHeads}`, String(numKvHeads));
  checkOutputs(key, numKvHeads * headDim, `numKvHeads ${numKvHeads} × headDim ${headDim}`);
  const valueDim = given.valueDim === undefined ? divide(value, numKvHeads, "numKvHeads") : readCount(given.valueDim, "options.valueDim");
  checkOutputs(value, numKvHeads * valueDim, `numKvHeads ${numKvHeads} × valueDim ${valueDim}`);
  checkInputs(output, numHeads * valueDim, `numHeads ${numHeads} × valueDim ${valueDim}`);
  if (given.embedDim !== undefined) checkInputs(query, readCount(given.embedDim, "options.embedDim"), `embedDim ${given.embedDim}`);
  if (given.kDim !== undefined) checkInputs(key, readCount(given.kDim, "options.kDim"), `kDim ${given.kDim}`);
  if (given.vDim !== undefined) checkInputs(value, readCount(given.vDim, "options.vDim"), `vDim ${given.vDim}`);
  for (const matrix of [query, key, value, output]) {
    if (matrix.outDim === 0 || matrix.inDim === 0)
      fail("shape", matrix.operand.argument, "sizes of at least 1", formatShape(matrix.operand.shape));
  }
  checkVector(parts.queryBias, numHeads * headDim, `numHeads ${numHeads} × headDim ${headDim}`);
  checkVector(parts.keyBias, numKvHeads * headDim, `numKvHeads ${numKvHeads} × headDim ${headDim}`);
  checkVector(parts.valueBias, numKvHeads * valueDim, `numKvHeads ${numKvHeads} × valueDim ${valueDim}`);
  checkVector(parts.outputBias, output.outDim, `outputDim ${output.outDim}`);
  checkVector(parts.queryNorm, headDim, `headDim ${headDim}`);
  checkVector(parts.keyNorm, headDim, `headDim ${headDim}`);
  checkVector(parts.extraKey, numKvHeads * headDim, `numKvHeads ${numKvHeads} × headDim ${headDim}`);
  checkVector(parts.extraValue, numKvHeads * valueDim, `numKvHeads ${numKvHeads} × valueDim ${valueDim}`);
  if ((parts.extraKey === undefined) !== (parts.extraValue === undefined)) {
    failWith("option", "weights: an extra key and an extra value are given together or not at all", { argument: "weights" });
  }
  return {
    embedDim: query.inDim,
    keyDim: key.inDim,
    valueInputDim: value.inDim,
    numHeads,
    numKvHeads,
    headDim,
    valueDim,
    outputDim: output.outDim,
  };
}

function readCount(value: unknown, argument: string): number {
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > 2 ** 24) {
    fail("option", argument, "a whole number of at least 1", describeValue(value));
  }
  return value as number;
}

function divide(matrix: WeightMatrix, by: number, name: string): number {
  if (matrix.outDim === 0 || matrix.outDim % by !== 0) {
    fail(
      "shape",
      matrix.operand.argument,
      `a multiple of ${name} ${by} outputs`,
      `${matrix.outDim} (shape ${formatShape(matrix.operand.shape)})`,
    );
  }
  return matrix.outDim / by;
}

function checkOutputs(matrix: WeightMatrix, count: number, what: string): void {
  if (matrix.outDim !== count) {
    fail("shape", matrix.operand.argument, `${count} outputs (${what})`, `${matrix.outDim} (shape ${formatShape(matrix.operand.shape)})`);
  }
}

function checkInputs(matrix: WeightMatrix, count: number, what: string): void {
  if (matrix.inDim !== count) {
    fail("shape", matrix.operand.argument, `${count} inputs (${what})`, `${matrix.inDim} (shape ${formatShape(matrix.operand.shape)})`);
  }
}

function checkVector(vector: WeightVector | undefined, count: number, what: string): void {
  if (vector !== undefined && vector.values.length !== count)
    fail("shape", vector.argument, `${count} elements (${what})`, String(vector.values.length));
}

/** Reads `options.weightLayout`. */
export function readLayout(layout: unknown): WeightLayout {
  if (layout === undefined) return "out-in";
  if (layout !== "out-in" && layout !== "in-out") fail("option", "options.weightLayout", '"out-in" or "in-out"', describeValue(layout));
  return layout;
}

/** Reads `options.normEpsilon`. */
export function readEpsilon(epsilon: unknown): number {
  if (epsilon === undefined) return 1e-6;
  if (typeof epsilon !== "number" || !(epsilon >= 0) || !Number.isFinite(epsilon))
    fail("option", "options.normEpsilon", "a number of at least 0", describeValue(epsilon));
  return epsilon;
}
