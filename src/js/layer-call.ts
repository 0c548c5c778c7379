/**
 * One call of a packed layer: what `selfAttention` and `layer.forward` have in common. Everything is read and checked, room is made for all of it at once,
 * and the core runs the seven steps (src/core/self_attention.cpp).
 */
import { KvType, MatrixStage } from "./attention-block.js";
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
import { describeValue, fail, failMemory, failWith, formatShape } from "./errors.js";
import { Status } from "./glue-module.js";
import { readNewLengths, WasmKvCache, type CacheStep, type KvCache } from "./kv-cache.js";
import { staged } from "./memory.js";
import { float32Bytes, locateOperand, placeFloat32, readResult, readTensor, resultBytes, resultKind, type Operand } from "./operands.js";
import type { PackedLayer } from "./packed-layer.js";
import {
  countUp,
  placeRotary,
  planRotary,
  readPositions,
  readRotary,
  writeRotaryTable,
  type CheckedRotary,
  type PlacedRotary,
  type Positions,
  type PositionsLike,
  type RotaryOptions,
  type RotaryPlan,
} from "./rotary.js";
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
  /**
   * Takes the keys and values of this call and is attended to. The queries are the last positions: `causal: true` needs no alignment, and `keyLengths` says
   * how many positions of this call each batch row really has (the others are padding at the end and are not kept).
   */
  cache?: KvCache | undefined;
  /** `false`: nothing is projected to keys and values, only what the cache holds is attended to (cross attention while decoding). Default: `true`. */
  append?: boolean | undefined;
  /** Rotary positions of queries and keys. `false`: none, also where the layer has some. Default: those of the layer. */
  rotary?: RotaryOptions | false | undefined;
  /** Positions of x for `rotary`, see {@link PositionsLike}. Default: 0, 1, 2, …; with a cache they go on where each batch row ends. */
  positions?: PositionsLike | undefined;
  /** Where values come from, as long as `key`. Default: `key`. */
  value?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
  /**
   * Where the output goes: a buffer of the instance (written in place, no copy) or a tensor of yours, of the output's shape and element type.
   * It must not overlap an input that is in WASM memory. The result's `output` is this very object. Default: a new tensor.
   */
  out?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
}

/** Names of {@link LayerCallOptions}. */
export const LAYER_CALL_OPTIONS: readonly string[] = [...SCORE_OPTIONS, "key", "value", "cache", "append", "rotary", "positions", "out"];

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
  ownRotary?: CheckedRotary,
): LayerCallResult<FloatTensor> & { steps?: SelfAttentionSteps } {
  const { numHeads, numKvHeads, headDim, valueDim, embedDim, keyDim, valueInputDim, outputDim } = layer.sizes;

  // ---- what was given --------------------------------------------------------------------------------------------
  const x = readTensor(xLike, "x");
  const rank = x.shape.length;
  const { batch, length } = readSequence(x, rank, embedDim, "embedDim");
  const use = options?.cache === undefined ? undefined : readCache(engine, options, layer, batch, trace);
  const projects = readAppend(options);
  const { key, value } = projects ? readKeyValue(x, options, keyDim, valueInputDim, batch, rank) : { key: x, value: x };
  const seqLenNew = projects ? key.shape[rank - 2]! : 0;
  const after = use === undefined ? undefined : readStep(use, options!, batch, length, seqLenNew, key === x);
  const sizes: AttentionSizes = {
    batchSize: batch,
    numHeads,
    numKvHeads,
    seqLenQ: length,
    seqLenK: after === undefined ? seqLenNew : after.seqLenK,
    headDim,
    valueDim,
  };
  const score = readScoreOptions(after === undefined ? options : after.score, "options", sizes, undefined);
  const rotaryPlan = planCall(engine, options, ownRotary, layer, use, batch, length, seqLenNew, key === x);
  const hasExtra = layer.extraKey !== 0;
  const seqLenK = sizes.seqLenK + (hasExtra ? 1 : 0);
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
  const atRotary = bytes;
  bytes += rotaryPlan === undefined ? 0 : rotaryPlan.bytes;
  const atCache = bytes;
  bytes += use === undefined ? 0 : 2 * staged(4 * batch);
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
  if (use !== undefined) {
    if (target !== undefined && target.pointer !== 0) use.cache.checkApart(target.pointer, target.elements * 4);
    if (projects) use.cache.makeRoom(after!.step);
  }
  const base = engine.memory.stage(bytes, what);

  // ---- inputs ----------------------------------------------------------------------------------------------------
  const block = layerBlock(engine);
  const xPointer = placeFloat32(engine, x, base);
  const keyPointer = key === x ? xPointer : placeFloat32(engine, key, base + atKey);
  const valuePointer = value === key ? keyPointer : placeFloat32(engine, value, base + atValue);
  if (outputPointer === 0) outputPointer = base + atOutput;
  writeScoreOptions(engine, score, sizes, block + 4 * Word.attention, base + atScore);
  const placed = rotaryPlan === undefined ? undefined : placeRotary(engine, rotaryPlan, base + atRotary);
  if (use !== undefined) writeCache(engine, use.cache, after!.step.counts, block, base + atCache);

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
  writeRotary(words, word, placed, length, seqLenNew);
  if (use === undefined) {
    words[word + Word.cacheKey] = 0;
    words[word + Word.newLengths] = 0;
  }
  writeSizes(words, word + Word.attention, sizes, seqLenK);
  words[word + Word.attention + AttentionBlock.matrix] = score.numWeights === 0 ? 0 : base + atWeights;
  words[word + Word.attention + AttentionBlock.matrixStage] = score.numWeights === 0 ? MatrixStage.none : MatrixStage.weights;
  writeTrace(words, word + Word.traceQuery, traced, base + atTrace);

  // ---- compute, and results out ----------------------------------------------------------------------------------
  // A target of the caller in WASM memory is written by the computation itself, so what else can fail comes before.
  const early = target !== undefined && target.pointer !== 0 && weightElements > 0 ? reserve(engine, weightElements) : undefined;
  const status = engine.glue.selfAttention(block);
  if (status !== Status.ok) failStatus(engine, block, status, what);
  if (use !== undefined && projects) use.cache.commit(after!.step, engine.memory.words[word + Word.cacheFinite] !== 0);

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

function readAppend(options: LayerCallOptions | undefined): boolean {
  const append = options?.append;
  if (append === undefined || append === true) return true;
  if (append !== false) fail("option", "options.append", "true or false", describeValue(append));
  if (options!.cache === undefined) fail("option", "options.append", "options.cache beside it", "none");
  if (options!.key !== undefined || options!.value !== undefined) {
    failWith("option", "options.append: false projects no keys and values, so expected no options.key and options.value", {
      argument: "options.append",
    });
  }
  return false;
}

// ---- cache ---------------------------------------------------------------------------------------------------------

interface CacheUse {
  readonly cache: WasmKvCache;
}

function readCache(engine: Engine, options: LayerCallOptions, layer: PackedLayer, batch: number, trace: boolean): CacheUse {
  const { cache } = options;
  if (!(cache instanceof WasmKvCache)) fail("option", "options.cache", "a cache made by createKvCache", describeValue(cache));
  cache.checkUsable("options.cache");
  if (cache.engine !== engine)
    failWith("option", "options.cache: expected a cache of this instance, got one of another instance", { argument: "options.cache" });
  const { numKvHeads, headDim, valueDim } = layer.sizes;
  const wanted = `batchSize ${batch}, numKvHeads ${numKvHeads}, headDim ${headDim}, valueDim ${valueDim}`;
  const got = `batchSize ${cache.batchSize}, numKvHeads ${cache.numKvHeads}, headDim ${cache.headDim}, valueDim ${cache.valueDim}`;
  if (wanted !== got) fail("shape", "options.cache", wanted, got);
  if (trace)
    failWith("option", "options.trace: expected no cache beside it; layer.forward returns weights with returnWeights", {
      argument: "options.trace",
    });
  if (layer.extraKey !== 0) failWith("option", "options.cache: a layer with an extra key can't use a cache", { argument: "options.cache" });
  return { cache };
}

/** Lengths and positions of a call with a cache, as if it were a plain call on what the cache holds afterwards. */
function readStep(
  { cache }: CacheUse,
  options: LayerCallOptions,
  batch: number,
  length: number,
  seqLenNew: number,
  isSelf: boolean,
): { step: CacheStep; seqLenK: number; score: Required<ScoreOptions> } {
  const { causal, alignment, queryOffset, window, keyLengths } = options;
  const counts = readNewLengths(keyLengths, "options.keyLengths", batch, seqLenNew);
  if (causal === "top-left" || alignment === "top-left") {
    fail("option", causal === "top-left" ? "options.causal" : "options.alignment", 'true or "bottom-right" with a cache', '"top-left"');
  }
  const step = cache.planStep(counts, seqLenNew);
  const lengths = new Int32Array(batch);
  const offsets = new Int32Array(batch);
  let seqLenK = 0;
  let isUniform = true;
  for (let b = 0; b < batch; b++) {
    const kept = cache.keptAfter(step, b);
    lengths[b] = kept + (counts === undefined ? seqLenNew : counts[b]!);
    // Queries that belong to the new keys begin where these begin; others end where the keys end.
    offsets[b] = isSelf && seqLenNew > 0 ? kept : lengths[b]! - length;
    seqLenK = Math.max(seqLenK, lengths[b]!);
    if (lengths[b] !== lengths[0]) isUniform = false;
  }
  const left = cache.window === 0 ? window?.left : Math.min(cache.window - 1, limitOf(window?.left));
  return {
    step,
    seqLenK,
    // Written out: a copy by `...` takes longer than a small step.
    score: {
      mask: options.mask,
      bias: options.bias,
      causal: causal === undefined ? undefined : causal !== false,
      alignment: undefined,
      queryOffset: queryOffset ?? (isUniform ? offsets[0] : offsets),
      window: left === undefined && window === undefined ? undefined : { left, right: window?.right },
      keyLengths: isUniform ? undefined : lengths,
      scale: options.scale,
      softcap: options.softcap,
      alibiSlopes: options.alibiSlopes,
      sinks: options.sinks,
      returnWeights: options.returnWeights,
    },
  };
}

/** A window side as a number: none given, -1 and Infinity are no limit. Anything wrong is found when the options are read. */
function limitOf(side: number | undefined): number {
  return side === undefined || side === -1 ? Infinity : side;
}

function writeCache(engine: Engine, cache: WasmKvCache, counts: Int32Array | undefined, block: number, at: number): void {
  const newLengths = at + staged(4 * cache.batchSize);
  engine.memory.writeInt32(at, cache.lengths);
  if (counts !== undefined) engine.memory.writeInt32(newLengths, counts);
  const { key, value, start } = cache.area;
  const { words } = engine.memory;
  const word = block >>> 2;
  words[word + Word.cacheKey] = key;
  words[word + Word.cacheValue] = value;
  words[word + Word.cacheType] = cache.dtype === "float16" ? KvType.f16 : KvType.f32;
  words[word + Word.cacheCapacity] = cache.capacity;
  words[word + Word.cacheLengths] = at;
  words[word + Word.cacheStart] = start;
  words[word + Word.newLengths] = counts === undefined ? 0 : newLengths;
  words[word + Word.cacheFinite] = cache.isFinite ? 1 : 0;
}

// ---- rotary positions ------------------------------------------------------------------------------------------------

function planCall(
  engine: Engine,
  options: LayerCallOptions | undefined,
  ownRotary: CheckedRotary | undefined,
  layer: PackedLayer,
  use: CacheUse | undefined,
  batch: number,
  length: number,
  seqLenNew: number,
  isSelf: boolean,
): RotaryPlan | undefined {
  const given = options?.rotary;
  const rotary = given === undefined ? ownRotary : given === false ? undefined : readRotary(given, "options.rotary", layer.sizes.headDim);
  if (rotary === undefined) {
    if (options?.positions !== undefined) fail("option", "options.positions", "rotary positions of the layer or options.rotary", "none");
    return undefined;
  }
  const goOn = (count: number): Positions => (use === undefined ? countUp([0], batch, count) : use.cache.newPositions(undefined, count));
  const query = options?.positions === undefined ? goOn(length) : readPositions(options.positions, "options.positions", batch, length);
  return planRotary(engine, rotary, batch, query, isSelf && seqLenNew === length ? undefined : goOn(seqLenNew));
}

function writeRotary(words: Int32Array, word: number, placed: PlacedRotary | undefined, length: number, seqLenNew: number): void {
  writeRotaryTable(words, word + Word.rotaryCos, placed);
  words[word + Word.queryPositionsRows] = placed === undefined ? 0 : placed.queryRows;
  words[word + Word.queryPositionsBatchStride] = placed === undefined ? 0 : placed.queryBatchStride * length;
  words[word + Word.keyPositionsRows] = placed === undefined ? 0 : placed.keyRows;
  words[word + Word.keyPositionsBatchStride] = placed === undefined ? 0 : placed.keyBatchStride * seqLenNew;
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
