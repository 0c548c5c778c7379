/**
 * One call of a packed layer: what `selfAttention` and `layer.forward` have in common. Everything is read and checked, room is made for all of it at once,
 * and the core runs the seven steps (src/core/self_attention.cpp).
 */
import { MatrixStage } from "./attention-block.js";
import {
  readScoreOptions,
  SCORE_OPTIONS,
  scoreBytes,
  writeScoreOptions,
  type AttentionSizes,
  type CheckedScoreOptions,
  type ScoreOptions,
} from "./attention-options.js";
import { AttentionBlock } from "./attention-block.js";
import type { AttentionBuffer } from "./buffer.js";
import type { Engine } from "./engine.js";
import { fail, failMemory, failWith, formatShape } from "./errors.js";
import { Status } from "./glue-module.js";
import { staged } from "./memory.js";
import { float32Bytes, locateOperand, placeFloat32, readResult, readTensor, resultBytes, resultKind, type Operand } from "./operands.js";
import type { PackedLayer } from "./packed-layer.js";
import { checkOverlap, finishTarget, readTarget } from "./scaled-dot-product-attention.js";
import { SELF_ATTENTION_BLOCK_WORDS, SelfAttentionBlock as Word } from "./self-attention-block.js";
import { checkAddressable } from "./sizes.js";
import type { FloatTensor, Tensor, TensorLike } from "./tensor.js";

/** Options of a call of a layer. For each one only `undefined` means "not given". */
export interface LayerCallOptions extends ScoreOptions {
  /**
   * Where keys come from: [seqLenK, keyDim] or [batch, seqLenK, keyDim], of the rank of x (cross attention). Default: x itself (self-attention).
   */
  key?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
  /** Where values come from, as long as `key`. Default: `key`. */
  value?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
  /**
   * Where the output goes: a buffer of the instance (written in place, no copy) or a tensor of yours, of the output's shape and element type.
   * It must not overlap an input that is in WASM memory. The result's `output` is this very object. Default: a new tensor.
   */
  out?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
}

/** Names of {@link LayerCallOptions}. */
export const LAYER_CALL_OPTIONS: readonly string[] = [...SCORE_OPTIONS, "key", "value", "out"];

/** Every intermediate result of self-attention, in the order of the calculation. The batch axis is there when x has one. */
export interface SelfAttentionSteps {
  /** Step 1, project: x · Wqᵀ + bq, cut into heads [numHeads, seqLenQ, headDim] (after norm and rotary positions, where there are any). */
  query: Tensor;
  /** Step 1: x · Wkᵀ + bk [numKvHeads, seqLenK, headDim]. */
  key: Tensor;
  /** Step 1: x · Wvᵀ + bv [numKvHeads, seqLenK, valueDim]. */
  value: Tensor;
  /** Step 2, score: query · keyᵀ [numHeads, seqLenQ, seqLenK]. */
  scores: Tensor;
  /** Step 3, scale: scale · scores. */
  scaledScores: Tensor;
  /** Step 3, mask: the same after softcap, ALiBi and bias, and -Infinity where the query does not see the key. */
  maskedScores: Tensor;
  /** Step 4, softmax: each row sums to 1, or is 0 where the query sees no key. */
  weights: Tensor;
  /** Steps 5 and 6, weighted sums of the values, with the heads concatenated: [seqLenQ, numHeads · valueDim]. Step 7 makes the output of it. */
  context: Tensor;
}

/** What a call of a layer returns: new arrays that belong to the caller. */
export interface LayerCallResult<Output = Tensor> {
  /** Shaped like x, with the width of the output projection; float16 if x is. */
  output: Output;
  /** With `returnWeights`: [batch, numHeads, seqLenQ, seqLenK], without the batch axis if x has none; see {@link ReturnWeights}. */
  weights?: Tensor;
}

interface Sequence {
  readonly batch: number;
  readonly length: number;
}

/** Runs the layer. `what` is the name of the public function for messages; `trace` asks for all steps. `options` have known names only. */
export function callLayer(
  engine: Engine,
  layer: PackedLayer,
  xLike: unknown,
  options: LayerCallOptions | undefined,
  trace: boolean,
  what: string,
): LayerCallResult<FloatTensor> & { steps?: SelfAttentionSteps } {
  const { numHeads, numKvHeads, headDim, valueDim, embedDim, keyDim, valueInputDim, outputDim } = layer.sizes;

  // ---- what was given --------------------------------------------------------------------------------------------
  const x = readTensor(xLike, "x");
  const rank = x.shape.length;
  const { batch, length } = readSequence(x, rank, embedDim, "embedDim");
  const { key, value } = readKeyValue(x, options, keyDim, valueInputDim, batch, rank);
  const seqLenNew = key.shape[rank - 2]!;
  const sizes: AttentionSizes = {
    batchSize: batch,
    numHeads,
    numKvHeads,
    seqLenQ: length,
    seqLenK: seqLenNew,
    headDim,
    valueDim,
  };
  const score = readScoreOptions(options, "options", sizes, undefined);
  const hasExtra = layer.extraKey !== 0;
  const seqLenK = seqLenNew + (hasExtra ? 1 : 0);
  if (hasExtra && score.alibiSlopes !== undefined) {
    failWith("option", "options.alibiSlopes: a layer with an extra key has no positions for it", { argument: "options.alibiSlopes" });
  }

  // ---- results ---------------------------------------------------------------------------------------------------
  const kind = resultKind(x);
  const leading = rank === 3 ? [batch] : [];
  const outputShape = [...leading, length, outputDim];
  const outputElements = batch * length * outputDim;
  const target = options?.out === undefined ? undefined : readTarget(options.out, outputShape, outputElements, kind);
  const weightElements = batch * score.numWeights * length * seqLenK;
  checkAddressable(4 * weightElements, "weights");

  // ---- room: everything in one area ------------------------------------------------------------------------------
  locateOperand(engine, x);
  let bytes = float32Bytes(x);
  const atKey = bytes;
  if (key !== x) {
    locateOperand(engine, key);
    bytes += float32Bytes(key);
  }
  const atValue = bytes;
  if (value !== key) {
    locateOperand(engine, value);
    bytes += float32Bytes(value);
  }
  const atScore = bytes;
  bytes += scoreBytes(engine, score, sizes);
  const atOutput = bytes;
  let outputPointer = 0;
  if (target !== undefined) {
    locateOperand(engine, target);
    if (target.pointer !== 0) {
      checkOverlap(target, [x, key, value, score.mask?.operand, score.bias?.operand]);
      if (target.dtype === "float32") outputPointer = target.pointer;
    }
  }
  if (outputPointer === 0) bytes += resultBytes(outputElements, kind);
  const atWeights = bytes;
  bytes += staged(4 * weightElements);
  const atTrace = bytes;
  const traced = trace ? planTrace(sizes, seqLenK, rank) : undefined;
  if (traced !== undefined) bytes += traced.bytes;
  checkAddressable(bytes, what);
  const base = engine.memory.stage(bytes, what);

  // ---- inputs ----------------------------------------------------------------------------------------------------
  const block = layerBlock(engine);
  const xPointer = placeFloat32(engine, x, base);
  const keyPointer = key === x ? xPointer : placeFloat32(engine, key, base + atKey);
  const valuePointer = value === key ? keyPointer : placeFloat32(engine, value, base + atValue);
  if (outputPointer === 0) outputPointer = base + atOutput;
  writeScoreOptions(engine, score, sizes, block + 4 * Word.attention, base + atScore);

  const { words, floats } = engine.memory;
  const word = block >>> 2;
  words[word + Word.x] = xPointer;
  words[word + Word.keyX] = keyPointer;
  words[word + Word.valueX] = valuePointer;
  words[word + Word.xDim] = embedDim;
  words[word + Word.keyXDim] = keyDim;
  words[word + Word.valueXDim] = valueInputDim;
  words[word + Word.seqLenNew] = seqLenNew;
  words[word + Word.packedQuery] = layer.query;
  words[word + Word.packedKey] = layer.key;
  words[word + Word.packedValue] = layer.value;
  words[word + Word.packedOutput] = layer.output;
  words[word + Word.output] = outputPointer;
  words[word + Word.outputDim] = outputDim;
  words[word + Word.queryNorm] = layer.queryNorm;
  words[word + Word.keyNorm] = layer.keyNorm;
  floats[word + Word.normEpsilon] = layer.normEpsilon;
  words[word + Word.extraKey] = layer.extraKey;
  words[word + Word.extraValue] = layer.extraValue;
  writeSizes(words, word + Word.attention, sizes, seqLenK);
  words[word + Word.attention + AttentionBlock.matrix] = score.numWeights === 0 ? 0 : base + atWeights;
  words[word + Word.attention + AttentionBlock.matrixStage] = score.numWeights === 0 ? MatrixStage.none : MatrixStage.weights;
  writeTrace(words, word + Word.traceQuery, traced, base + atTrace);

  // ---- compute, and results out ----------------------------------------------------------------------------------
  // A target of the caller in WASM memory is written by the computation itself, so what else can fail comes before.
  const early = target !== undefined && target.pointer !== 0 && weightElements > 0 ? reserve(engine, weightElements) : undefined;
  const status = engine.glue.selfAttention(block);
  if (status !== Status.ok) failStatus(engine, block, status, what);

  const result: LayerCallResult<FloatTensor> & { steps?: SelfAttentionSteps } = { output: undefined as unknown as FloatTensor };
  if (score.numWeights !== 0) {
    let data = early;
    if (data === undefined) data = engine.memory.readFloat32(base + atWeights, weightElements);
    else engine.memory.readFloat32Into(base + atWeights, data);
    result.weights = { data, shape: weightShape(leading, sizes, score, seqLenK) };
  }
  if (traced !== undefined) result.steps = readTrace(engine, traced, base + atTrace);
  if (target === undefined) {
    result.output = readResult(engine, base + atOutput, outputElements, outputShape, kind);
  } else {
    finishTarget(engine, target, outputPointer, base + atOutput, outputElements);
    result.output = options!.out as FloatTensor;
  }
  return result;
}

// ---- inputs --------------------------------------------------------------------------------------------------------

function readSequence(operand: Operand, rank: number, width: number, name: string): Sequence {
  const { shape } = operand;
  if ((rank !== 2 && rank !== 3) || shape.length !== rank) {
    const expected = operand.argument === "x" ? "[sequence, width] or [batch, sequence, width]" : `rank ${rank} like x`;
    fail("shape", operand.argument, expected, `shape ${formatShape(shape)}`);
  }
  if (shape[rank - 1] !== width)
    fail("shape", operand.argument, `width ${width} (${name} of the layer)`, `${shape[rank - 1]} (shape ${formatShape(shape)})`);
  return { batch: rank === 3 ? shape[0]! : 1, length: shape[rank - 2]! };
}

function readKeyValue(
  x: Operand,
  options: LayerCallOptions | undefined,
  keyDim: number,
  valueInputDim: number,
  batch: number,
  rank: number,
): { key: Operand; value: Operand } {
  if (options?.value !== undefined && options.key === undefined) {
    failWith("option", "options.value: expected options.key beside it, got none", { argument: "options.value" });
  }
  const key = options?.key === undefined ? x : readTensor(options.key, "options.key");
  const value = options?.value === undefined ? key : readTensor(options.value, "options.value");
  const keys = readSequence(key, rank, keyDim, key === x ? "of keys; a layer for cross attention needs options.key" : "keyDim");
  const values = readSequence(value, rank, valueInputDim, value === key ? "of values; the layer needs options.value" : "valueInputDim");
  if (keys.batch !== batch) fail("shape", key.argument, `batch size ${batch} like x`, `${keys.batch} (shape ${formatShape(key.shape)})`);
  if (values.batch !== batch)
    fail("shape", value.argument, `batch size ${batch} like x`, `${values.batch} (shape ${formatShape(value.shape)})`);
  if (values.length !== keys.length) {
    fail("shape", value.argument, `${keys.length} positions like ${key.argument}`, `${values.length} (shape ${formatShape(value.shape)})`);
  }
  return { key, value };
}

// ---- the block -----------------------------------------------------------------------------------------------------

const blocks = new WeakMap<Engine, number>();

function layerBlock(engine: Engine): number {
  let block = blocks.get(engine);
  if (block === undefined) {
    block = engine.memory.createBlock(4 * SELF_ATTENTION_BLOCK_WORDS);
    blocks.set(engine, block);
  }
  return block;
}

function writeSizes(words: Int32Array, at: number, sizes: AttentionSizes, seqLenK: number): void {
  words[at + AttentionBlock.batchSize] = sizes.batchSize;
  words[at + AttentionBlock.numHeads] = sizes.numHeads;
  words[at + AttentionBlock.numKvHeads] = sizes.numKvHeads;
  words[at + AttentionBlock.seqLenQ] = sizes.seqLenQ;
  words[at + AttentionBlock.seqLenK] = seqLenK;
  words[at + AttentionBlock.headDim] = sizes.headDim;
  words[at + AttentionBlock.valueDim] = sizes.valueDim;
}

function failStatus(engine: Engine, block: number, status: number, what: string): never {
  const { memory } = engine;
  if (status === Status.outOfMemory) {
    failMemory(what, memory.words[(block >>> 2) + Word.attention + AttentionBlock.scratchBytes]! >>> 0, memory.usage.maximumBytes);
  }
  return failWith(status === Status.invalidOption ? "option" : "shape", `${what}: the core refused the arguments (status ${status})`, {
    argument: what,
  });
}

// ---- results -------------------------------------------------------------------------------------------------------

function weightShape(
  leading: readonly number[],
  { numHeads, seqLenQ }: AttentionSizes,
  score: CheckedScoreOptions,
  seqLenK: number,
): number[] {
  const shape = [...leading];
  if (!score.weightMean) shape.push(score.weightHeads === undefined ? numHeads : score.numWeights);
  shape.push(seqLenQ, seqLenK);
  return shape;
}

function reserve(engine: Engine, elements: number): Float32Array {
  try {
    return new Float32Array(elements);
  } catch (cause) {
    return failMemory("result", 4 * elements, engine.memory.usage.maximumBytes, cause);
  }
}

const STEPS = ["query", "key", "value", "scores", "scaledScores", "maskedScores", "weights", "context"] as const;

/** Room for the steps: their shapes, and their places in the staging area, in the order of the words of the block. */
interface TracePlan {
  readonly shapes: readonly (readonly number[])[];
  readonly elements: readonly number[];
  readonly offsets: readonly number[];
  readonly bytes: number;
}

function planTrace(sizes: AttentionSizes, seqLenK: number, rank: number): TracePlan {
  const { batchSize, numHeads, numKvHeads, seqLenQ, headDim, valueDim } = sizes;
  const matrix = [numHeads, seqLenQ, seqLenK];
  const inner = [
    [numHeads, seqLenQ, headDim],
    [numKvHeads, seqLenK, headDim],
    [numKvHeads, seqLenK, valueDim],
    matrix,
    matrix,
    matrix,
    matrix,
    [seqLenQ, numHeads * valueDim],
  ];
  const shapes = inner.map((shape) => (rank === 3 ? [batchSize, ...shape] : shape));
  const elements = inner.map((shape) => shape.reduce((product, size) => product * size, batchSize));
  const offsets: number[] = [];
  let bytes = 0;
  for (const [step, count] of elements.entries()) {
    checkAddressable(4 * count, `steps.${STEPS[step]}`);
    offsets.push(bytes);
    bytes += staged(4 * count);
  }
  return { shapes, elements, offsets, bytes };
}

function writeTrace(words: Int32Array, at: number, plan: TracePlan | undefined, base: number): void {
  for (let step = 0; step < STEPS.length; step++) words[at + step] = plan === undefined ? 0 : base + plan.offsets[step]!;
}

function readTrace(engine: Engine, plan: TracePlan, base: number): SelfAttentionSteps {
  const steps: Partial<Record<(typeof STEPS)[number], Tensor>> = {};
  for (const [step, name] of STEPS.entries()) {
    steps[name] = { data: engine.memory.readFloat32(base + plan.offsets[step]!, plan.elements[step]!), shape: [...plan.shapes[step]!] };
  }
  return steps as SelfAttentionSteps;
}
