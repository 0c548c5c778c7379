/** Attention itself: `attn.scaledDotProductAttention(query, key, value, options)`. */
import { AttentionBlock as Word, ATTENTION_BLOCK_WORDS, KvType, MatrixStage } from "./attention-block.js";
import {
  readScoreOptions,
  SCORE_OPTIONS,
  scoreBytes,
  writeScoreOptions,
  type AttentionSizes,
  type CheckedScoreOptions,
  type ReturnWeights,
  type ScoreOptions,
} from "./attention-options.js";
import type { AttentionBuffer } from "./buffer.js";
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failMemory, failWith, formatShape } from "./errors.js";
import { Status } from "./glue-module.js";
import { KvSource } from "./kv-source.js";
import { staged } from "./memory.js";
import {
  float32Bytes,
  locateOperand,
  placeFloat32,
  placeRaw,
  rawBytes,
  readResult,
  readTensor,
  resultBytes,
  resultKind,
  type Operand,
  type ResultKind,
} from "./operands.js";
import { checkAddressable } from "./sizes.js";
import type { FloatTensor, Tensor, TensorLike } from "./tensor.js";

/**
 * Order of the axes of query, key, value and output: `"bhsd"` = [batch, heads, sequence, dim], `"bshd"` = [batch, sequence, heads, dim].
 * For tensors of rank 3 the batch is left out: [heads, sequence, dim] or [sequence, heads, dim].
 */
export type Layout = "bhsd" | "bshd";

/** The scores before softcap, after it, or with everything that the softmax sees. */
export type ScoreStage = "scaled" | "softcapped" | "masked";

/** Options of `scaledDotProductAttention`. For each one only `undefined` means "not given". */
export interface ScaledDotProductAttentionOptions extends ScoreOptions {
  /** Order of the axes of query, key, value and output. Masks, biases, weights and lse always have heads before positions. Default: `"bhsd"`. */
  layout?: Layout | undefined;
  /** Return the log-sum-exp of each row of scores, sink included: lse [batch, heads, seqLenQ]; -Infinity for a row that sees no key. Default: `false`. */
  returnLse?: boolean | undefined;
  /**
   * Return the scores of all heads [batch, heads, seqLenQ, seqLenK] as they are before the softmax: `"scaled"` (scale · query · key), `"softcapped"`, or
   * `"masked"` (with bias and ALiBi; -Infinity where the query does not see the key). Costs the score part of the work once more. Default: none.
   */
  returnScores?: ScoreStage | undefined;
  /**
   * Where the output goes: a buffer of the instance (written in place, no copy) or a tensor of yours, of the output's shape and element type.
   * It must not overlap an input that is in WASM memory. The result's `output` is this very object. Default: a new tensor.
   */
  out?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
}

/** What `scaledDotProductAttention` returns: new arrays that belong to the caller, each with a buffer of its own. */
export interface ScaledDotProductAttentionResult<Output = Tensor> {
  /** Shaped like the query, with the value's width; float16 if the query is. */
  output: Output;
  /**
   * With `returnWeights`: [batch, heads, seqLenQ, seqLenK] (without the axes that the query does not have), row = query, column = key. Rows sum to 1, or are 0
   * where the query sees no key; hidden entries are exactly 0. For `"mean"` without the axis of heads; for `{ heads }` with those heads.
   */
  weights?: Tensor;
  /** With `returnLse`: [batch, heads, seqLenQ]. */
  lse?: Tensor;
  /** With `returnScores`: [batch, heads, seqLenQ, seqLenK]. */
  scores?: Tensor;
}

/** The options, with the types of what is asked for: they decide which results are surely there. */
export type AskingOptions<Weights, Lse, Scores> = ScaledDotProductAttentionOptions & {
  returnWeights?: Weights | undefined;
  returnLse?: Lse | undefined;
  returnScores?: Scores | undefined;
};

/** The result of a call with such options. */
export type AskedResult<Output, Weights, Lse, Scores> = ScaledDotProductAttentionResult<Output> &
  ([Weights] extends [Exclude<ReturnWeights, boolean> | true] ? { weights: Tensor } : unknown) &
  ([Lse] extends [true] ? { lse: Tensor } : unknown) &
  ([Scores] extends [ScoreStage] ? { scores: Tensor } : unknown);

const OPTION_NAMES: ReadonlySet<string> = new Set([...SCORE_OPTIONS, "layout", "returnLse", "returnScores", "out"]);

/** Distances along (batch, head, row), in elements. */
interface Strides {
  readonly batch: number;
  readonly head: number;
  readonly row: number;
}

/** Sizes of a tensor of rank 2 to 4 in the given layout. */
interface Extents {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
}

/** See `Attention.scaledDotProductAttention` in instance.ts for what callers are told. */
export function scaledDotProductAttention(
  engine: Engine,
  queryLike: unknown,
  keyLike: unknown,
  valueLike: unknown,
  givenOptions: ScaledDotProductAttentionOptions | undefined,
): ScaledDotProductAttentionResult<FloatTensor> {
  engine.checkAlive();

  // (query, cache, options): the cache stands for key and value.
  let kv: KvSource | undefined;
  let options = givenOptions;
  if (keyLike instanceof KvSource) {
    kv = keyLike;
    if (givenOptions !== undefined) {
      if (valueLike !== undefined)
        fail("option", "value", "nothing: the cache holds the values, and the options come third", describeValue(valueLike));
    } else {
      options = valueLike as ScaledDotProductAttentionOptions | undefined;
    }
    kv.checkUsable("key");
    if (kv.engine !== engine)
      failWith("option", "key: expected a cache of this instance, got one of another instance", { argument: "key" });
  }

  // ---- what was given --------------------------------------------------------------------------------------------
  let isPositionsFirst = false;
  let stage: number = MatrixStage.none;
  let wantsLse = false;
  let out: unknown;
  if (options !== undefined) {
    checkOptionNames(options, OPTION_NAMES, "options");
    const { layout, returnLse, returnScores } = options;
    if (layout !== undefined && layout !== "bhsd") {
      if (layout !== "bshd") fail("option", "options.layout", '"bhsd" or "bshd"', describeValue(layout));
      isPositionsFirst = true;
    }
    if (returnLse !== undefined) {
      if (typeof returnLse !== "boolean") fail("option", "options.returnLse", "true or false", describeValue(returnLse));
      wantsLse = returnLse;
    }
    if (returnScores !== undefined) {
      if (returnScores !== "scaled" && returnScores !== "softcapped" && returnScores !== "masked") {
        fail("option", "options.returnScores", '"scaled", "softcapped" or "masked"', describeValue(returnScores));
      }
      stage = MatrixStage[returnScores];
    }
    out = options.out;
  }
  const query = readTensor(queryLike, "query");
  const rank = query.shape.length;
  if (rank < 2 || rank > 4) failRank(query, isPositionsFirst);
  const q = extents(query, isPositionsFirst);

  let key: Operand | undefined;
  let value: Operand | undefined;
  let sizes: AttentionSizes;
  if (kv === undefined) {
    key = readTensor(keyLike, "key");
    value = readTensor(valueLike, "value");
    sizes = checkKeyValue(query, q, key, value, isPositionsFirst);
  } else {
    sizes = checkCache(query, q, kv);
  }
  const score = readScoreOptions(options, "options", sizes, kv);

  // ---- results ---------------------------------------------------------------------------------------------------
  const { batchSize, numHeads, seqLenQ, seqLenK, valueDim } = sizes;
  const kind = resultKind(query);
  const outputShape: number[] = [];
  for (let axis = 0; axis < rank - 1; axis++) outputShape.push(query.shape[axis]!);
  outputShape.push(valueDim);
  const rows = batchSize * numHeads * seqLenQ;
  const outputElements = rows * valueDim;
  const target = out === undefined ? undefined : readTarget(out, outputShape, outputElements, kind);
  const weightElements = batchSize * score.numWeights * seqLenQ * seqLenK;
  const scoreElements = stage === MatrixStage.none ? 0 : rows * seqLenK;

  // ---- room: everything in one area, sizes known before the first byte is written -------------------------------------
  locateOperand(engine, query);
  let bytes = float32Bytes(query);
  const atKey = bytes;
  let atValue = bytes;
  let usesHalf = false;
  let isKeyQuery = false;
  let isValueKey = false;
  if (key !== undefined && value !== undefined) {
    locateOperand(engine, key);
    locateOperand(engine, value);
    usesHalf = key.dtype === "float16" && value.dtype === "float16"; // the core reads these as they are
    isKeyQuery = !usesHalf && isSame(key, query);
    isValueKey = isSame(value, key);
    if (!isKeyQuery) bytes += usesHalf ? rawBytes(key) : float32Bytes(key);
    atValue = bytes;
    if (!isValueKey) bytes += usesHalf ? rawBytes(value) : float32Bytes(value);
  }
  const atScore = bytes;
  if (options !== undefined || score.keyLengths !== undefined) bytes += scoreBytes(engine, score, sizes);
  const atOutput = bytes;
  let outputPointer = 0;
  if (target !== undefined) {
    locateOperand(engine, target);
    if (target.pointer !== 0) {
      checkOverlap(target, [query, key, value, score.mask?.operand, score.bias?.operand]);
      if (kv !== undefined) checkCacheOverlap(target, kv, sizes);
      if (target.dtype === "float32") outputPointer = target.pointer;
    }
  }
  if (outputPointer === 0) bytes += resultBytes(outputElements, kind);
  const atLse = bytes;
  if (wantsLse) bytes += staged(4 * rows);
  const atWeights = bytes;
  bytes += staged(4 * weightElements);
  const atScores = bytes;
  bytes += staged(4 * scoreElements);
  checkAddressable(4 * weightElements, "weights");
  checkAddressable(4 * scoreElements, "scores");
  const base = engine.memory.stage(bytes, "scaledDotProductAttention");

  // ---- inputs ----------------------------------------------------------------------------------------------------
  const block = attentionBlock(engine);
  const queryPointer = placeFloat32(engine, query, base);
  let keyPointer = queryPointer;
  let valuePointer = queryPointer;
  if (key !== undefined && value !== undefined) {
    if (!isKeyQuery) keyPointer = usesHalf ? placeRaw(engine, key, base + atKey) : placeFloat32(engine, key, base + atKey);
    valuePointer = keyPointer;
    if (!isValueKey) valuePointer = usesHalf ? placeRaw(engine, value, base + atValue) : placeFloat32(engine, value, base + atValue);
  }
  if (outputPointer === 0) outputPointer = base + atOutput;
  writeScoreOptions(engine, score, sizes, block, base + atScore);

  const words = engine.memory.words;
  const word = block >>> 2;
  words[word + Word.query] = queryPointer;
  words[word + Word.output] = outputPointer;
  writeStrides(words, word + Word.queryBatchStride, numHeads, seqLenQ, sizes.headDim, isPositionsFirst);
  writeStrides(words, word + Word.outputBatchStride, numHeads, seqLenQ, valueDim, isPositionsFirst);
  if (kv === undefined) {
    words[word + Word.key] = keyPointer;
    words[word + Word.value] = valuePointer;
    words[word + Word.kvType] = usesHalf ? KvType.f16 : KvType.f32;
    words[word + Word.kvFinite] = 0;
    writeStrides(words, word + Word.keyBatchStride, sizes.numKvHeads, seqLenK, sizes.headDim, isPositionsFirst);
    writeStrides(words, word + Word.valueBatchStride, sizes.numKvHeads, seqLenK, valueDim, isPositionsFirst);
  } else {
    words[word + Word.key] = kv.keyPointer;
    words[word + Word.value] = kv.valuePointer;
    words[word + Word.kvType] = kv.kvType;
    words[word + Word.kvFinite] = kv.isFinite ? 1 : 0;
    copyStrides(words, word + Word.keyBatchStride, kv.keyStrides);
    copyStrides(words, word + Word.valueBatchStride, kv.valueStrides);
  }
  words[word + Word.batchSize] = batchSize;
  words[word + Word.numHeads] = numHeads;
  words[word + Word.numKvHeads] = sizes.numKvHeads;
  words[word + Word.seqLenQ] = seqLenQ;
  words[word + Word.seqLenK] = seqLenK;
  words[word + Word.headDim] = sizes.headDim;
  words[word + Word.valueDim] = valueDim;
  words[word + Word.lse] = 0;

  // ---- compute (nothing, where there are no rows) -------------------------------------------------------------------
  if (stage !== MatrixStage.none && rows > 0) {
    // Scores are matrices of their own, for all heads: a pass without output.
    words[word + Word.output] = 0;
    words[word + Word.matrix] = base + atScores;
    words[word + Word.matrixStage] = stage;
    words[word + Word.matrixHeads] = 0;
    words[word + Word.matrixMean] = 0;
    forward(engine, block, "scaledDotProductAttention");
    writeScoreOptions(engine, score, sizes, block, base + atScore); // the words for heads again; views may have died, too
    engine.memory.words[word + Word.output] = outputPointer;
  }
  const wordsNow = engine.memory.words;
  wordsNow[word + Word.lse] = wantsLse ? base + atLse : 0;
  wordsNow[word + Word.matrix] = score.numWeights === 0 ? 0 : base + atWeights;
  wordsNow[word + Word.matrixStage] = score.numWeights === 0 ? MatrixStage.none : MatrixStage.weights;
  // A target of the caller in WASM memory is written by the computation itself, so what else can fail comes before.
  const isLate = target !== undefined && target.pointer !== 0 && (weightElements > 0 || scoreElements > 0 || wantsLse);
  const early = isLate ? reserve(engine, weightElements, scoreElements, wantsLse ? rows : 0) : undefined;
  if (rows > 0) forward(engine, block, "scaledDotProductAttention");

  // ---- results out -----------------------------------------------------------------------------------------------
  const result: ScaledDotProductAttentionResult<FloatTensor> = { output: undefined as unknown as FloatTensor };
  const leading = rank === 4 ? [batchSize, numHeads] : rank === 3 ? [numHeads] : [];
  if (score.numWeights !== 0) {
    result.weights = { data: read(engine, base + atWeights, weightElements, early?.weights), shape: weightShape(rank, sizes, score) };
  }
  if (wantsLse) result.lse = { data: read(engine, base + atLse, rows, early?.lse), shape: [...leading, seqLenQ] };
  if (stage !== MatrixStage.none) {
    result.scores = { data: read(engine, base + atScores, scoreElements, early?.scores), shape: [...leading, seqLenQ, seqLenK] };
  }
  if (target === undefined) {
    result.output = readResult(engine, base + atOutput, outputElements, outputShape, kind);
  } else {
    finishTarget(engine, target, outputPointer, base + atOutput, outputElements);
    result.output = out as FloatTensor;
  }
  return result;
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

function extents({ shape }: Operand, isPositionsFirst: boolean): Extents {
  const rank = shape.length;
  return {
    batch: rank === 4 ? shape[0]! : 1,
    heads: rank === 2 ? 1 : shape[isPositionsFirst ? rank - 2 : rank - 3]!,
    length: rank === 2 ? shape[0]! : shape[isPositionsFirst ? rank - 3 : rank - 2]!,
    width: shape[rank - 1]!,
  };
}

function axes(isPositionsFirst: boolean): string {
  return isPositionsFirst
    ? "[batch, sequence, heads, dim], [sequence, heads, dim] or [sequence, dim]"
    : "[batch, heads, sequence, dim], [heads, sequence, dim] or [sequence, dim]";
}

function failRank(operand: Operand, isPositionsFirst: boolean): never {
  return fail("shape", operand.argument, axes(isPositionsFirst), `shape ${formatShape(operand.shape)}`);
}

function checkKeyValue(query: Operand, q: Extents, key: Operand, value: Operand, isPositionsFirst: boolean): AttentionSizes {
  const rank = query.shape.length;
  for (const operand of [key, value]) {
    if (operand.shape.length !== rank) {
      fail("shape", operand.argument, `rank ${rank} like the query (${axes(isPositionsFirst)})`, `shape ${formatShape(operand.shape)}`);
    }
  }
  const k = extents(key, isPositionsFirst);
  const v = extents(value, isPositionsFirst);
  checkWidth(query, q.width);
  if (k.batch !== q.batch) fail("shape", "key", `batch size ${q.batch} like the query`, sized("batch size", k.batch, key));
  if (v.batch !== q.batch) fail("shape", "value", `batch size ${q.batch} like the query`, sized("batch size", v.batch, value));
  if (k.width !== q.width) fail("shape", "key", `headDim ${q.width} like the query`, sized("headDim", k.width, key));
  checkHeads(q.heads, k.heads, query, key);
  if (v.heads !== k.heads) fail("shape", "value", `${k.heads} heads like the key`, sized("heads", v.heads, value));
  if (v.length !== k.length) fail("shape", "value", `seqLenK ${k.length} like the key`, sized("seqLenK", v.length, value));
  return {
    batchSize: q.batch,
    numHeads: q.heads,
    numKvHeads: k.heads,
    seqLenQ: q.length,
    seqLenK: k.length,
    headDim: q.width,
    valueDim: v.width,
  };
}

function checkCache(query: Operand, q: Extents, kv: KvSource): AttentionSizes {
  const { batchSize, numKvHeads, headDim, valueDim, lengths } = kv;
  checkWidth(query, q.width);
  if (q.batch !== batchSize) fail("shape", "query", `batch size ${batchSize} like the cache`, sized("batch size", q.batch, query));
  if (q.width !== headDim) fail("shape", "query", `headDim ${headDim} like the cache`, sized("headDim", q.width, query));
  checkHeads(q.heads, numKvHeads, query, undefined);
  let seqLenK = 0;
  for (let b = 0; b < lengths.length; b++) seqLenK = Math.max(seqLenK, lengths[b]!);
  return { batchSize, numHeads: q.heads, numKvHeads, seqLenQ: q.length, seqLenK, headDim, valueDim };
}

function checkWidth(query: Operand, width: number): void {
  if (width === 0) fail("shape", "query", "headDim of at least 1", sized("headDim", 0, query));
}

function checkHeads(numHeads: number, numKvHeads: number, query: Operand, key: Operand | undefined): void {
  if (numHeads === 0) fail("shape", "query", "at least 1 head", `shape ${formatShape(query.shape)}`);
  if (numKvHeads === 0 || numHeads % numKvHeads !== 0) {
    const got = key === undefined ? `${numKvHeads} heads` : sized("heads", numKvHeads, key);
    fail("shape", "key", `a number of heads that divides the query's ${numHeads}`, got);
  }
}

function sized(name: string, size: number, operand: Operand): string {
  return `${name === "heads" ? `${size} heads` : `${name} ${size}`} (shape ${formatShape(operand.shape)})`;
}

function weightShape(rank: number, { batchSize, seqLenQ, seqLenK, numHeads }: AttentionSizes, score: CheckedScoreOptions): number[] {
  const shape = rank === 4 ? [batchSize] : [];
  if (!score.weightMean && (rank > 2 || score.weightHeads !== undefined))
    shape.push(score.weightHeads === undefined ? numHeads : score.numWeights);
  shape.push(seqLenQ, seqLenK);
  return shape;
}

// ---- the block -----------------------------------------------------------------------------------------------------

const blocks = new WeakMap<Engine, number>();

/** The parameter block of an instance for attention. It is filled anew by each call. */
export function attentionBlock(engine: Engine): number {
  let block = blocks.get(engine);
  if (block === undefined) {
    block = engine.memory.createBlock(4 * ATTENTION_BLOCK_WORDS);
    blocks.set(engine, block);
  }
  return block;
}

function writeStrides(words: Int32Array, at: number, heads: number, length: number, width: number, isPositionsFirst: boolean): void {
  words[at] = heads * length * width;
  words[at + 1] = isPositionsFirst ? width : length * width;
  words[at + 2] = isPositionsFirst ? heads * width : width;
}

function copyStrides(words: Int32Array, at: number, strides: Strides): void {
  words[at] = strides.batch;
  words[at + 1] = strides.head;
  words[at + 2] = strides.row;
}

/** Runs the core on a filled block. Throws for anything but success; nothing has been written then. */
export function forward(engine: Engine, block: number, what: string): void {
  const status = engine.glue.attentionForward(block);
  if (status !== Status.ok) failStatus(engine, block, status, what);
}

function failStatus(engine: Engine, block: number, status: number, what: string): never {
  const { memory } = engine;
  if (status === Status.outOfMemory) failMemory(what, memory.words[(block >>> 2) + Word.scratchBytes]! >>> 0, memory.usage.maximumBytes);
  return failWith(status === Status.invalidOption ? "option" : "shape", `${what}: the core refused the arguments (status ${status})`, {
    argument: what,
  });
}

// ---- outputs -------------------------------------------------------------------------------------------------------

export function readTarget(out: unknown, shape: readonly number[], elements: number, kind: ResultKind): Operand {
  const target = readTensor(out, "options.out");
  const wanted = kind === "float32" ? "float32" : "float16";
  if (target.dtype !== wanted) fail("dtype", "options.out", `${wanted} elements like the query`, `${target.dtype} elements`);
  if (target.elements !== elements || target.shape.length !== shape.length || shape.some((size, i) => target.shape[i] !== size)) {
    fail("shape", "options.out", `shape ${formatShape(shape)}`, formatShape(target.shape));
  }
  return target;
}

export function checkOverlap(target: Operand, inputs: readonly (Operand | undefined)[]): void {
  const end = target.pointer + bytesOf(target);
  for (const input of inputs) {
    if (input === undefined || input.pointer === 0 || input.elements === 0) continue;
    if (input.pointer < end && target.pointer < input.pointer + bytesOf(input)) {
      fail("option", "options.out", `memory that does not overlap ${input.argument}`, `memory that overlaps ${input.argument}`);
    }
  }
}

function bytesOf(operand: Operand): number {
  return operand.elements * (operand.dtype === "float32" ? 4 : operand.dtype === "float16" ? 2 : 1);
}

function checkCacheOverlap(target: Operand, kv: KvSource, sizes: AttentionSizes): void {
  const bytesPerElement = kv.kvType === KvType.f16 ? 2 : 4;
  const end = target.pointer + bytesOf(target);
  const spans: [number, Strides][] = [
    [kv.keyPointer, kv.keyStrides],
    [kv.valuePointer, kv.valueStrides],
  ];
  for (const [pointer, strides] of spans) {
    if (pointer < end && target.pointer < pointer + strides.batch * sizes.batchSize * bytesPerElement) {
      fail("option", "options.out", "memory that does not overlap the cache", "memory that overlaps the cache");
    }
  }
}

export function finishTarget(engine: Engine, target: Operand, outputPointer: number, staging: number, elements: number): void {
  if (target.dtype === "float32") {
    if (target.pointer === 0) engine.memory.readFloat32Into(outputPointer, target.data as Float32Array);
    return;
  }
  const halves = target.pointer !== 0 ? target.pointer : staging + staged(elements * 4);
  engine.glue.floatToHalf(outputPointer, halves, elements);
  if (target.pointer === 0) engine.memory.readHalfInto(halves, target.data as ArrayBufferView);
}

interface Reserved {
  weights: Float32Array;
  scores: Float32Array;
  lse: Float32Array;
}

function reserve(engine: Engine, weights: number, scores: number, lse: number): Reserved {
  try {
    return { weights: new Float32Array(weights), scores: new Float32Array(scores), lse: new Float32Array(lse) };
  } catch (cause) {
    return failMemory("result", 4 * (weights + scores + lse), engine.memory.usage.maximumBytes, cause);
  }
}

function read(engine: Engine, pointer: number, elements: number, early: Float32Array | undefined): Float32Array {
  if (early === undefined) return engine.memory.readFloat32(pointer, elements);
  engine.memory.readFloat32Into(pointer, early);
  return early;
}

/** True when two operands are the same elements, so that one copy serves both. */
function isSame(a: Operand, b: Operand): boolean {
  return a.dtype === b.dtype && a.data !== undefined && a.data === b.data;
}
