/**
 * The options that decide who sees whom and what is returned: shared by every call that ends in attention (scaledDotProductAttention, selfAttention,
 * the layer). Read and checked here once, against the sizes of the call; written into the parameter block afterwards.
 *
 *     checkOptionNames(options, new Set([...SCORE_OPTIONS, "layout", "out"]), "options");
 *     const score = readScoreOptions(options, "options", sizes, cache);     // throws; nothing written yet
 *     bytes += scoreBytes(engine, score);                                   // room in the staging area
 *     writeScoreOptions(engine, score, sizes, block, at);                   // fills its part of the block; matrix and lse pointers are the caller's
 */
import { alibiSlopes } from "./alibi.js";
import { AttentionBlock as Word } from "./attention-block.js";
import { WasmBuffer, type AttentionBuffer } from "./buffer.js";
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failWith, formatShape } from "./errors.js";
import type { KvSource } from "./kv-source.js";
import { staged } from "./memory.js";
import { float32Bytes, locateOperand, placeFloat32, placeRaw, rawBytes, readAnyTensor, type Operand } from "./operands.js";
import { flatten, type NestedBooleans, type NestedNumbers, type TensorLike } from "./tensor.js";

/**
 * How positions of queries and keys are aligned where their numbers differ.
 *
 * ```text
 * 2 queries, 4 keys, causal      "top-left"   1 0 0 0      "bottom-right"   1 1 1 0
 *                                             1 1 0 0                       1 1 1 1
 * ```
 * `"top-left"`: the first query stands beside the first key (PyTorch's `is_causal`, ONNX). `"bottom-right"`: the last query stands beside the last
 * valid key (decoding with earlier keys, flash-attention); with `keyLengths` that is the last valid key of each batch row.
 */
export type Alignment = "top-left" | "bottom-right";

/**
 * A yes/no mask: 1 (true) = the query may attend to the key. Broadcasts as NumPy does, right-aligned, against [batchSize, numHeads, seqLenQ, seqLenK]:
 * rank 2 is [seqLenQ, seqLenK], rank 3 is [numHeads, seqLenQ, seqLenK], size 1 repeats. In both layouts.
 *
 * Accepted: a tensor of `Uint8Array` (0 = hidden, anything else = attend) or of an array of booleans; nested arrays of booleans, or of 0 and 1; a buffer of
 * type "uint8"; a bare `Uint8Array` or array of seqLenQ · seqLenK elements. Floats are refused: a float mask is added to the scores and is called `bias`.
 *
 * ```text
 * 3 queries, 4 keys; query 0 sees keys 0 and 1, query 1 sees key 3, query 2 sees none (its output and weights are 0):
 *   1 1 0 0
 *   0 0 0 1
 *   0 0 0 0
 * ```
 * | what you have | what to give |
 * | --- | --- |
 * | true hides (PyTorch's `key_padding_mask`, `masked_fill`) | `Uint8Array.from(hides, (h) => h ? 0 : 1)` |
 * | number of valid keys per batch row | `keyLengths`, no mask |
 * | 0/1 integers, 1 = keep (`attention_mask` of tokenizers, [batch, seqLenK]) | `{ data: Uint8Array.from(ints, Number), shape: [batch, 1, 1, seqLenK] }` |
 * | 0 and -Infinity (or -1e9) floats | `bias` |
 */
export type MaskLike =
  | { readonly data: Uint8Array | readonly boolean[]; readonly shape: readonly number[] }
  | { readonly data: Uint8Array | readonly boolean[]; readonly dims: readonly number[] }
  | AttentionBuffer<"uint8">
  | NestedBooleans
  | NestedNumbers
  | Uint8Array;

/**
 * Numbers added to the scores (after scale and softcap), broadcast as {@link MaskLike} is. -Infinity hides the key; any other number, also -1e9, is an
 * ordinary one. Accepted: tensors of float32 or float16, nested arrays of numbers, buffers, a bare `Float32Array` of seqLenQ · seqLenK elements.
 */
export type BiasLike = TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | NestedNumbers | Float32Array;

/** Which matrices of weights are returned. */
export type ReturnWeights =
  | boolean
  /** The mean over the query heads: one matrix per batch row. */
  | "mean"
  /** The matrices of these query heads, in this order. */
  | { readonly heads: readonly number[] };

/** Options of every call that computes attention. For each one only `undefined` means "not given". */
export interface ScoreOptions {
  /** Who may attend to whom, 1 = attend. Composes with all others: a key hidden by one of them is hidden. Default: all keys. */
  mask?: MaskLike | undefined;
  /** Added to the scores. Default: nothing. */
  bias?: BiasLike | undefined;
  /**
   * Query t sees the keys up to its own position. Default: `false`.
   *
   * ```text
   * 3 queries, 3 keys   1 0 0
   *                     1 1 0
   *                     1 1 1
   * ```
   * `true` is enough when there are as many keys as queries, and with a cache (the queries are the last positions). Otherwise the alignment has to be named,
   * here or as `alignment`, see {@link Alignment}: half of the world expects the one, half the other.
   */
  causal?: boolean | Alignment | undefined;
  /** Alignment for `causal: true`, `window` and `alibiSlopes` when there are more or fewer keys than queries, see {@link Alignment}. */
  alignment?: Alignment | undefined;
  /** Position of the first query among the keys, for all batch rows or for each: instead of an alignment. May be negative (leading rows see nothing). */
  queryOffset?: number | ArrayLike<number> | undefined;
  /**
   * Number of keys to the left and right of the own position that are seen; the own position always is. Omitted, `-1` or `Infinity`: no limit.
   * A window size that counts the own position (Mistral's `sliding_window`) is `left: size - 1`. Composes with `causal`.
   *
   * ```text
   * 4 queries, 4 keys, { left: 1, right: 0 }   1 0 0 0
   *                                            1 1 0 0
   *                                            0 1 1 0
   *                                            0 0 1 1
   * ```
   */
  window?: { readonly left?: number | undefined; readonly right?: number | undefined } | undefined;
  /** Number of valid keys of each batch row [batchSize] (or one number for all): the rest is padding, which is not read. Default: all keys. */
  keyLengths?: number | ArrayLike<number> | undefined;
  /** Factor on query · key. Default: 1 / sqrt(headDim). */
  scale?: number | undefined;
  /** Limit of the scores: softcap · tanh(score / softcap), before bias and mask. Default: 0 = off. */
  softcap?: number | undefined;
  /** ALiBi (arXiv:2108.12409): -slope · |distance| is added to the scores. One slope per query head [numHeads]; `true`: the paper's, see `alibiSlopes`. */
  alibiSlopes?: true | ArrayLike<number> | undefined;
  /** Attention sinks: one logit per query head [numHeads] that joins the softmax and attends to nothing, so that rows of weights sum to less than 1. */
  sinks?: ArrayLike<number> | undefined;
  /** Return the weights as well, see {@link ReturnWeights}. Off by default: without it no seqLenQ × seqLenK matrix exists at any time. */
  returnWeights?: ReturnWeights | undefined;
}

/** Names of {@link ScoreOptions}. */
export const SCORE_OPTIONS: readonly string[] = [
  "mask",
  "bias",
  "causal",
  "alignment",
  "queryOffset",
  "window",
  "keyLengths",
  "scale",
  "softcap",
  "alibiSlopes",
  "sinks",
  "returnWeights",
];

/** The sizes of one call. */
export interface AttentionSizes {
  readonly batchSize: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly seqLenQ: number;
  readonly seqLenK: number;
  readonly headDim: number;
  readonly valueDim: number;
}

/** {@link ScoreOptions} after checking. */
export interface CheckedScoreOptions {
  mask: ScoreOperand | undefined;
  bias: ScoreOperand | undefined;
  causal: boolean;
  windowLeft: number;
  windowRight: number;
  queryOffset: number;
  queryOffsets: ArrayLike<number> | undefined;
  keyLengths: ArrayLike<number> | undefined;
  scale: number;
  softcap: number;
  alibiSlopes: ArrayLike<number> | undefined;
  sinks: ArrayLike<number> | undefined;
  /** Number of weight matrices per batch row; 0 = none wanted. */
  numWeights: number;
  weightHeads: readonly number[] | undefined;
  weightMean: boolean;
}

/** A mask or bias with its distances along (batch, head, query, key); 0 repeats. */
export interface ScoreOperand {
  readonly operand: Operand;
  readonly strides: readonly [number, number, number, number];
}

/**
 * Reads the options and checks them against the sizes. `argument` is what messages call the options object. `kv` is the cache that the keys come from,
 * if any: it brings the valid lengths and the positions.
 */
export function readScoreOptions(
  options: ScoreOptions | undefined,
  argument: string,
  sizes: AttentionSizes,
  kv: KvSource | undefined,
): CheckedScoreOptions {
  const result: CheckedScoreOptions = {
    mask: undefined,
    bias: undefined,
    causal: false,
    windowLeft: -1,
    windowRight: -1,
    queryOffset: 0,
    queryOffsets: undefined,
    keyLengths: undefined,
    scale: 1 / Math.sqrt(sizes.headDim),
    softcap: 0,
    alibiSlopes: undefined,
    sinks: undefined,
    numWeights: 0,
    weightHeads: undefined,
    weightMean: false,
  };
  if (kv !== undefined) {
    readLengths(kv, sizes, result);
    if (kv.window > 0) result.windowLeft = kv.window - 1;
  }
  if (options === undefined) {
    if (result.windowLeft >= 0) readPositions(undefined, undefined, undefined, argument, sizes, kv, result);
    return result;
  }

  const {
    mask,
    bias,
    causal,
    alignment,
    queryOffset,
    window,
    keyLengths,
    scale,
    softcap,
    alibiSlopes: slopes,
    sinks,
    returnWeights,
  } = options;
  if (mask !== undefined) result.mask = readMask(mask, `${argument}.mask`, sizes);
  if (bias !== undefined) result.bias = readBias(bias, `${argument}.bias`, sizes);
  if (scale !== undefined) result.scale = readFinite(scale, `${argument}.scale`);
  if (softcap !== undefined) {
    result.softcap = readFinite(softcap, `${argument}.softcap`);
    if (softcap < 0) fail("option", `${argument}.softcap`, "a positive number, or 0 for none", describeValue(softcap));
  }
  if (window !== undefined) readWindow(window, `${argument}.window`, result);
  if (slopes !== undefined) {
    result.alibiSlopes =
      slopes === true ? alibiSlopes(sizes.numHeads) : readVector(slopes, `${argument}.alibiSlopes`, sizes.numHeads, "numHeads");
    for (let i = 0; i < sizes.numHeads; i++) {
      if (!Number.isFinite(result.alibiSlopes[i]))
        fail("option", `${argument}.alibiSlopes[${i}]`, "a finite number", describeValue(result.alibiSlopes[i]));
    }
  }
  if (sinks !== undefined) result.sinks = readVector(sinks, `${argument}.sinks`, sizes.numHeads, "numHeads");
  if (keyLengths !== undefined) {
    if (kv !== undefined) fail("option", `${argument}.keyLengths`, "nothing: the cache knows its lengths", describeValue(keyLengths));
    result.keyLengths = readIntegers(keyLengths, `${argument}.keyLengths`, sizes.batchSize, 0, sizes.seqLenK);
  }
  if (returnWeights !== undefined && returnWeights !== false) readReturnWeights(returnWeights, `${argument}.returnWeights`, sizes, result);
  readPositions(causal, alignment, queryOffset, argument, sizes, kv, result);
  return result;
}

// ---- positions ----------------------------------------------------------------------------------------------------

function readLengths(kv: KvSource, sizes: AttentionSizes, result: CheckedScoreOptions): void {
  const { lengths } = kv;
  let isUniform = true;
  for (let i = 0; i < lengths.length; i++) if (lengths[i] !== sizes.seqLenK) isUniform = false;
  if (!isUniform) result.keyLengths = lengths;
}

function readPositions(
  causal: ScoreOptions["causal"],
  alignment: ScoreOptions["alignment"],
  queryOffset: ScoreOptions["queryOffset"],
  argument: string,
  sizes: AttentionSizes,
  kv: KvSource | undefined,
  result: CheckedScoreOptions,
): void {
  let named: Alignment | undefined;
  if (causal !== undefined && causal !== false) {
    if (causal !== true) named = readAlignment(causal, `${argument}.causal`, 'true, false, "top-left" or "bottom-right"');
    result.causal = true;
  }
  if (alignment !== undefined) {
    readAlignment(alignment, `${argument}.alignment`, '"top-left" or "bottom-right"');
    if (named !== undefined && named !== alignment)
      fail("option", `${argument}.alignment`, `"${named}", as options.causal says`, `"${alignment}"`);
    named = alignment;
  }
  if (queryOffset !== undefined) {
    if (named !== undefined)
      fail("option", `${argument}.queryOffset`, `nothing beside the alignment "${named}"`, describeValue(queryOffset));
    if (typeof queryOffset === "number") result.queryOffset = readInteger(queryOffset, `${argument}.queryOffset`, -MAX_INT32, MAX_INT32);
    else result.queryOffsets = readIntegers(queryOffset, `${argument}.queryOffset`, sizes.batchSize, -MAX_INT32, MAX_INT32);
    return;
  }
  const { seqLenQ, seqLenK } = sizes;
  if (named === undefined) {
    const positionsMatter = result.causal || result.windowLeft >= 0 || result.windowRight >= 0 || result.alibiSlopes !== undefined;
    if (!positionsMatter) return;
    if (kv !== undefined) {
      named = "bottom-right";
    } else if (seqLenQ !== seqLenK) {
      const option = result.causal ? "causal" : "alignment";
      const why = result.causal ? "causal" : result.alibiSlopes !== undefined ? "alibiSlopes" : "window";
      const expected = '"top-left" (the first query beside the first key) or "bottom-right" (the last query beside the last key)';
      failWith(
        "option",
        `${argument}.${option}: ${why} with ${seqLenQ} queries and ${seqLenK} keys needs an alignment by name; expected ${expected}`,
        {
          argument: `${argument}.${option}`,
          expected,
          got: describeValue(result.causal ? causal : alignment),
        },
      );
    }
  }
  if (named !== "bottom-right") return; // top-left, or equal lengths: the first query stands beside the first key
  if (result.keyLengths === undefined) {
    result.queryOffset = seqLenK - seqLenQ;
  } else {
    const offsets = new Int32Array(sizes.batchSize);
    for (let b = 0; b < offsets.length; b++) offsets[b] = result.keyLengths[b]! - seqLenQ; // negative on purpose: leading rows see nothing
    result.queryOffsets = offsets;
  }
}

function readAlignment(value: unknown, argument: string, expected: string): Alignment {
  if (value !== "top-left" && value !== "bottom-right") fail("option", argument, expected, describeValue(value));
  return value;
}

function readWindow(window: NonNullable<ScoreOptions["window"]>, argument: string, result: CheckedScoreOptions): void {
  checkOptionNames(window, WINDOW_NAMES, argument);
  const left = readSide(window.left, `${argument}.left`);
  if (result.windowLeft < 0 || (left >= 0 && left < result.windowLeft)) result.windowLeft = left; // a cache may have a window of its own
  result.windowRight = readSide(window.right, `${argument}.right`);
}
const WINDOW_NAMES: ReadonlySet<string> = new Set(["left", "right"]);

function readSide(side: number | undefined, argument: string): number {
  if (side === undefined || side === -1 || side === Infinity) return -1;
  if (!Number.isInteger(side) || side < 0)
    fail("option", argument, "a whole number of keys, or -1, Infinity or nothing for no limit", describeValue(side));
  return Math.min(side, MAX_WINDOW);
}
/** No sequence is longer; leaves room for the core to add positions in int32. */
const MAX_WINDOW = 2 ** 30;
const MAX_INT32 = 2 ** 31 - 1;

// ---- masks ---------------------------------------------------------------------------------------------------------

function readMask(value: unknown, argument: string, sizes: AttentionSizes): ScoreOperand {
  const given = zerosAndOnesToBytes(value, normaliseMatrix(value, argument, sizes));
  if (isFloat(given)) {
    fail(
      "dtype",
      argument,
      "a yes/no mask (Uint8Array or booleans, 1 = attend); numbers that are added to the scores are given as `bias`",
      describeContent(given),
    );
  }
  const asBits = booleansToBytes(given, argument);
  if (!isBytes(asBits)) fail("dtype", argument, "a Uint8Array or booleans, 1 = attend", describeContent(asBits));
  return broadcast(readAnyTensor(asBits, argument), sizes);
}

function readBias(value: unknown, argument: string, sizes: AttentionSizes): ScoreOperand {
  const given = normaliseMatrix(value, argument, sizes);
  if (isBytes(given) || (typeof given === "object" && given !== null && Array.isArray((given as { data?: unknown }).data))) {
    fail(
      "dtype",
      argument,
      "numbers in a Float32Array that are added to the scores; a yes/no mask is given as `mask`",
      describeContent(given),
    );
  }
  const operand = readAnyTensor(given, argument);
  return broadcast(operand, sizes);
}

/** Bare arrays of seqLenQ · seqLenK elements and nested arrays become tensors. */
function normaliseMatrix(value: unknown, argument: string, sizes: AttentionSizes): unknown {
  if (Array.isArray(value)) {
    const flat = flatten(value, argument);
    const isBare = flat.shape.length === 1 && flat.data.length === sizes.seqLenQ * sizes.seqLenK;
    return isBare ? { data: flat.data, shape: [sizes.seqLenQ, sizes.seqLenK] } : flat;
  }
  if (value instanceof Uint8Array || value instanceof Float32Array || value instanceof Uint8ClampedArray) {
    const wanted = sizes.seqLenQ * sizes.seqLenK;
    if (value.length !== wanted) {
      fail(
        "shape",
        argument,
        `${wanted} elements (seqLenQ ${sizes.seqLenQ} × seqLenK ${sizes.seqLenK}), or a tensor { data, shape }`,
        describeValue(value),
      );
    }
    return { data: value, shape: [sizes.seqLenQ, sizes.seqLenK] };
  }
  return value;
}

/** A mask written down as nested arrays of 0 and 1: nothing else can be meant. Floats in a typed array stay what they are. */
function zerosAndOnesToBytes(written: unknown, given: unknown): unknown {
  if (!Array.isArray(written)) return given;
  const { data, shape } = given as { data: Float32Array | Uint8Array; shape: number[] };
  return data.every((element) => element === 0 || element === 1) ? { data: Uint8Array.from(data), shape } : given;
}

/** A tensor whose data is an array of booleans, as one of bytes. */
function booleansToBytes(value: unknown, argument: string): unknown {
  const given = value as { data?: unknown; shape?: unknown; dims?: unknown };
  if (typeof value !== "object" || value === null || !Array.isArray(given.data)) return value;
  const { data } = flatten(given.data, `${argument}.data`);
  return { data, shape: given.shape ?? given.dims };
}

function contentOf(value: unknown): unknown {
  return value instanceof WasmBuffer
    ? value.data
    : typeof value === "object" && value !== null
      ? (value as { data?: unknown }).data
      : undefined;
}

function isBytes(value: unknown): boolean {
  const content = contentOf(value);
  return content instanceof Uint8Array || content instanceof Uint8ClampedArray;
}

function isFloat(value: unknown): boolean {
  const content = contentOf(value);
  if (content instanceof Float32Array || content instanceof Float64Array || content instanceof Uint16Array) return true;
  return Array.isArray(content)
    ? content.some((element) => typeof element === "number")
    : Object.prototype.toString.call(content) === "[object Float16Array]";
}

function describeContent(value: unknown): string {
  const content = contentOf(value);
  return describeValue(content === undefined ? value : content);
}

function broadcast(operand: Operand, sizes: AttentionSizes): ScoreOperand {
  const { shape } = operand;
  const rank = shape.length;
  const strides: [number, number, number, number] = [0, 0, 0, 0];
  let fits = rank <= 4;
  let stride = 1;
  for (let axis = 3; axis >= 0 && fits; axis--) {
    const at = rank - 4 + axis;
    if (at < 0) break;
    const size = shape[at]!;
    const full = axis === 3 ? sizes.seqLenK : axis === 2 ? sizes.seqLenQ : axis === 1 ? sizes.numHeads : sizes.batchSize;
    if (size === full) strides[axis] = size === 1 ? 0 : stride;
    else if (size !== 1) fits = false;
    stride *= size;
  }
  if (!fits) {
    const { batchSize, numHeads, seqLenQ, seqLenK } = sizes;
    const names = `batchSize ${batchSize}, numHeads ${numHeads}, seqLenQ ${seqLenQ}, seqLenK ${seqLenK}`;
    fail(
      "shape",
      operand.argument,
      `a shape that broadcasts to ${formatShape([batchSize, numHeads, seqLenQ, seqLenK])} (${names})`,
      formatShape(shape),
    );
  }
  return { operand, strides };
}

// ---- numbers -------------------------------------------------------------------------------------------------------

function readFinite(value: unknown, argument: string): number {
  if (typeof value !== "number" || !Number.isFinite(Math.fround(value))) fail("option", argument, "a finite number", describeValue(value));
  return value;
}

function readInteger(value: unknown, argument: string, low: number, high: number): number {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > high) {
    fail("option", argument, `a whole number from ${low} to ${high}`, describeValue(value));
  }
  return value as number;
}

/** One whole number per batch row; a single number stands for all rows. */
function readIntegers(value: unknown, argument: string, batchSize: number, low: number, high: number): ArrayLike<number> {
  if (typeof value === "number") {
    const same = readInteger(value, argument, low, high);
    return new Int32Array(batchSize).fill(same);
  }
  const list = readList(value, argument);
  if (list.length !== batchSize) fail("shape", argument, `${batchSize} elements (batchSize ${batchSize})`, describeValue(value));
  const copy = new Int32Array(batchSize);
  for (let b = 0; b < batchSize; b++) copy[b] = readInteger(list[b], `${argument}[${b}]`, low, high);
  return copy;
}

/** A vector of numbers of a given length: an array, a Float32Array, or a tensor of them. */
function readVector(value: unknown, argument: string, length: number, name: string): ArrayLike<number> {
  const list = readList(value, argument);
  if (list.length !== length) fail("shape", argument, `${length} elements (${name} ${length})`, describeValue(value));
  const copy = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    const element = list[i];
    if (typeof element !== "number") fail("dtype", `${argument}[${i}]`, "a number", describeValue(element));
    copy[i] = element;
  }
  return copy;
}

function readList(value: unknown, argument: string): ArrayLike<unknown> {
  const list = typeof value === "object" && value !== null && "data" in value ? (value as { data: unknown }).data : value;
  const isList =
    Array.isArray(list) ||
    (ArrayBuffer.isView(list) && !(list instanceof DataView) && !(list instanceof BigInt64Array) && !(list instanceof BigUint64Array));
  if (!isList) {
    const hint = list instanceof BigInt64Array || list instanceof BigUint64Array ? "; Array.from(list, Number) converts it" : "";
    fail("dtype", argument, "an array of numbers", describeValue(list) + hint);
  }
  return list as unknown as ArrayLike<unknown>;
}

// ---- weights -------------------------------------------------------------------------------------------------------

function readReturnWeights(value: ReturnWeights, argument: string, sizes: AttentionSizes, result: CheckedScoreOptions): void {
  if (value === true) {
    result.numWeights = sizes.numHeads;
  } else if (value === "mean") {
    result.numWeights = 1;
    result.weightMean = true;
  } else {
    if (typeof value !== "object" || value === null)
      fail("option", argument, 'true, false, "mean" or { heads: [...] }', describeValue(value));
    checkOptionNames(value, HEADS_NAMES, argument);
    const list = value.heads;
    if (!Array.isArray(list) || list.length === 0)
      fail("option", `${argument}.heads`, "an array of one or more query heads", describeValue(list));
    const heads = list.map((head, i) => readInteger(head, `${argument}.heads[${i}]`, 0, sizes.numHeads - 1));
    if (new Set(heads).size !== heads.length) fail("option", `${argument}.heads`, "each head once", `[${heads.join(", ")}]`);
    result.weightHeads = heads;
    result.numWeights = heads.length;
  }
}
const HEADS_NAMES: ReadonlySet<string> = new Set(["heads"]);

// ---- into the block ------------------------------------------------------------------------------------------------

/** Bytes of staging area that the options need. Finds out which of them are in WASM memory already. */
export function scoreBytes(engine: Engine, score: CheckedScoreOptions, sizes: AttentionSizes): number {
  let bytes = 0;
  if (score.mask !== undefined) {
    locateOperand(engine, score.mask.operand);
    bytes += rawBytes(score.mask.operand);
  }
  if (score.bias !== undefined) {
    locateOperand(engine, score.bias.operand);
    bytes += float32Bytes(score.bias.operand);
  }
  const perBatch = staged(4 * sizes.batchSize);
  const perHead = staged(4 * sizes.numHeads);
  if (score.keyLengths !== undefined) bytes += perBatch;
  if (score.queryOffsets !== undefined) bytes += perBatch;
  if (score.alibiSlopes !== undefined) bytes += perHead;
  if (score.sinks !== undefined) bytes += perHead;
  if (score.weightHeads !== undefined) bytes += perHead;
  return bytes;
}

/**
 * Copies what the options need to `at` (`scoreBytes` bytes of the staging area) and fills the words of the block that belong to them: all but the
 * tensors with their strides, the sizes, and `lse`, `matrix` and `matrixStage`.
 */
export function writeScoreOptions(engine: Engine, score: CheckedScoreOptions, sizes: AttentionSizes, block: number, at: number): void {
  const { memory } = engine;
  const base = block >>> 2;
  let next = at;
  let mask = 0,
    bias = 0,
    keyLengths = 0,
    queryOffsets = 0,
    slopes = 0,
    sinks = 0,
    heads = 0;
  if (score.mask !== undefined) {
    mask = placeRaw(engine, score.mask.operand, next);
    next += rawBytes(score.mask.operand);
  }
  if (score.bias !== undefined) {
    bias = placeFloat32(engine, score.bias.operand, next);
    next += float32Bytes(score.bias.operand);
  }
  if (score.keyLengths !== undefined) {
    memory.writeInt32((keyLengths = next), score.keyLengths);
    next += staged(4 * sizes.batchSize);
  }
  if (score.queryOffsets !== undefined) {
    memory.writeInt32((queryOffsets = next), score.queryOffsets);
    next += staged(4 * sizes.batchSize);
  }
  if (score.alibiSlopes !== undefined) {
    memory.writeFloat32((slopes = next), score.alibiSlopes);
    next += staged(4 * sizes.numHeads);
  }
  if (score.sinks !== undefined) {
    memory.writeFloat32((sinks = next), score.sinks);
    next += staged(4 * sizes.numHeads);
  }
  if (score.weightHeads !== undefined) memory.writeInt32((heads = next), score.weightHeads);

  const { words, floats } = memory;
  floats[base + Word.scale] = score.scale;
  floats[base + Word.softcap] = score.softcap;
  words[base + Word.causal] = score.causal ? 1 : 0;
  words[base + Word.windowLeft] = score.windowLeft;
  words[base + Word.windowRight] = score.windowRight;
  words[base + Word.queryOffset] = score.queryOffset;
  words[base + Word.queryOffsets] = queryOffsets;
  words[base + Word.keyLengths] = keyLengths;
  words[base + Word.mask] = mask;
  words[base + Word.bias] = bias;
  if (score.mask !== undefined) writeStrides(words, base + Word.maskBatchStride, score.mask.strides);
  if (score.bias !== undefined) writeStrides(words, base + Word.biasBatchStride, score.bias.strides);
  words[base + Word.alibiSlopes] = slopes;
  words[base + Word.sinks] = sinks;
  words[base + Word.matrixHeads] = heads;
  words[base + Word.numMatrixHeads] = score.weightHeads === undefined ? 0 : score.weightHeads.length;
  words[base + Word.matrixMean] = score.weightMean ? 1 : 0;
}

function writeStrides(words: Int32Array, at: number, strides: readonly number[]): void {
  for (let axis = 0; axis < 4; axis++) words[at + axis] = strides[axis]!;
}
