/// <reference lib="esnext.disposable" preserve="true" />
/** What `loadAttention` gives: the methods, bound to one instance. Each method's work is in the file of its name. */
import { alibiSlopes } from "./alibi.js";
import type { ReturnWeights } from "./attention-options.js";
import { WasmBuffer, type AttentionBuffer, type BufferDType } from "./buffer.js";
import { disposeSymbol } from "./dispose.js";
import type { Engine } from "./engine.js";
import { checkOptionNames } from "./errors.js";
import { WasmKvCache, type KvCache, type KvCacheOptions } from "./kv-cache.js";
import type { AttentionWeights } from "./layer-weights.js";
import type { MemoryUsage } from "./memory.js";
import { WasmMultiHeadAttention, type MultiHeadAttention, type MultiHeadAttentionOptions } from "./multi-head-attention.js";
import { rotaryEmbedding, type RotaryEmbeddingOptions } from "./rotary.js";
import {
  type AskedResult,
  type AskingOptions,
  type ScoreStage,
  scaledDotProductAttention,
  type ScaledDotProductAttentionOptions,
  type ScaledDotProductAttentionResult,
} from "./scaled-dot-product-attention.js";
import { selfAttention, type SelfAttentionOptions, type SelfAttentionResult } from "./self-attention.js";
import type { Float16Data, Tensor, TensorLike } from "./tensor.js";

/** What was loaded, and why. */
export interface Selection {
  /** The build: baseline SIMD or relaxed SIMD. */
  readonly variant: "simd" | "relaxed";
  /** Why this build, as a phrase. */
  readonly reason: string;
  /** Threads in use, the calling one included. */
  readonly threads: number;
  /** Why so many, as a phrase. */
  readonly threadsReason: string;
}

/** A tensor whose data is a `Float32Array`. */
export type Float32TensorLike =
  | { readonly data: Float32Array; readonly shape: readonly number[] }
  | { readonly data: Float32Array; readonly dims: readonly number[] };

/** A query whose data decides the type of the output: float16 in, float16 out. */
export type OutputOf<Query> = Query extends { readonly data: infer Data }
  ? Data extends Float16Data
    ? Tensor<Float16Data>
    : Data extends Uint16Array
      ? Tensor<Uint16Array>
      : Tensor
  : Tensor;

/**
 * An instance of the package: its own WebAssembly memory and nothing shared with other instances. Made by `loadAttention`.
 *
 * Calls are synchronous. The memory grows with the largest call and never shrinks; drop the instance and load another one to give it back.
 */
export interface Attention {
  /** The build that was loaded: `"simd"` or `"relaxed"`. */
  readonly variant: "simd" | "relaxed";
  /** Threads in use, the calling one included. */
  readonly threads: number;
  /** What was loaded, and why. */
  readonly selection: Selection;
  /** What the instance's memory holds at this moment. */
  readonly memory: MemoryUsage;
  /** True after `dispose()`. */
  readonly disposed: boolean;

  /**
   * Scaled dot-product attention over all heads of a batch. The shapes say everything: grouped heads (fewer key heads than query heads) and cross
   * attention (other lengths of query and key) are read off them.
   *
   * ```text
   * scores[b,h,t,s]  = cap(scale · query[b,h,t,:] · key[b,g,s,:]) + alibi + bias[b,h,t,s]      -Infinity where t does not see s
   * weights[b,h,t,:] = softmax over s of scores[b,h,t,:]                                       (a sink takes part and has no value)
   * output[b,h,t,:]  = sum over s of weights[b,h,t,s] · value[b,g,s,:]
   *   with g = floor(h / (numHeads / numKvHeads)), cap(x) = softcap · tanh(x / softcap) or x
   * ```
   *
   * @param query - [batch, numHeads, seqLenQ, headDim], or without the leading axes: [numHeads, seqLenQ, headDim], [seqLenQ, headDim].
   * @param key - [batch, numKvHeads, seqLenK, headDim], of the same rank; numKvHeads divides numHeads.
   * @param value - [batch, numKvHeads, seqLenK, valueDim], of the same rank; valueDim may differ from headDim.
   * @param options - See {@link ScaledDotProductAttentionOptions}. A key hidden by one of mask, bias, causal, window or keyLengths is hidden.
   * @returns `output` [batch, numHeads, seqLenQ, valueDim], and what was asked for. New arrays that belong to the caller. float16 if the query is.
   *
   * Edge cases: a query that sees no key gives output 0 and weights 0. Hidden keys and values are not read, so NaN there changes nothing; NaN that is read is
   * seen. Lengths 0 are legal. No input is changed; the same tensor may be given for all three.
   *
   * Cost: batch · numHeads · (visible pairs) · (headDim + valueDim) multiply-adds; memory beyond inputs and output is linear in the lengths unless matrices
   * are asked for.
   *
   * @throws AttentionError `"shape"`, `"dtype"`, `"option"`, `"memory"` or `"disposed"`; nothing was written then.
   */
  scaledDotProductAttention<
    Query extends TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">,
    Weights extends ReturnWeights | undefined = undefined,
    Lse extends boolean | undefined = undefined,
    Scores extends ScoreStage | undefined = undefined,
  >(
    query: Query,
    key: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">,
    value: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">,
    options?: AskingOptions<Weights, Lse, Scores>,
  ): AskedResult<OutputOf<Query>, Weights, Lse, Scores>;
  /**
   * The same with keys and values from a cache: nothing is copied. The queries are the last positions, so `causal: true` needs no alignment.
   *
   * @param query - [batchSize, numHeads, seqLenQ, headDim] of the cache's sizes; leading axes of size 1 may be left out.
   * @param cache - Made by `createKvCache`, after `append`.
   */
  scaledDotProductAttention<
    Query extends TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">,
    Weights extends ReturnWeights | undefined = undefined,
    Lse extends boolean | undefined = undefined,
    Scores extends ScoreStage | undefined = undefined,
  >(query: Query, cache: KvCache, options?: AskingOptions<Weights, Lse, Scores>): AskedResult<OutputOf<Query>, Weights, Lse, Scores>;

  /**
   * Attention with its projections, from plain weights: the seven steps of self-attention ("Attention Is All You Need", arXiv:1706.03762, section 3.2),
   * or of cross attention when `options.key` gives another sequence. Weights are packed anew by each call; `createMultiHeadAttention` keeps them.
   *
   * ```text
   * 1. project       query = x · wqᵀ + bq, key = x · wkᵀ + bk, value = x · wvᵀ + bv, each cut into heads
   * 2. score         scores = query · keyᵀ
   * 3. scale         scores / √headDim; then softcap, bias and masks
   * 4. softmax       weights: each row sums to 1
   * 5. weighted sum  weights · value
   * 6. concatenate   the heads side by side
   * 7. project       output = concatenated · woᵀ + bo
   * ```
   *
   * @param x - [seqLen, embedDim] or [batch, seqLen, embedDim].
   * @param weights - Matrices [out, in] as PyTorch stores them, and biases, see {@link AttentionWeights}.
   * @param options - `numHeads`, and what {@link SelfAttentionOptions} has: everything of `scaledDotProductAttention`, and `trace`.
   * @returns `output`, shaped like x with the width of wo; `weights` with `returnWeights`; `steps` with `trace: true`: every intermediate result.
   *   New arrays that belong to the caller. float16 if x is.
   *
   * Cost: batch · seqLen · (sizes of the four matrices) multiply-adds for the projections and those of `scaledDotProductAttention`. Memory beyond
   * inputs, packed weights and output is linear in the length unless matrices are asked for.
   *
   * @throws AttentionError `"shape"`, `"dtype"`, `"option"`, `"memory"` or `"disposed"`; nothing was written then.
   */
  selfAttention<Input extends TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">>(
    x: Input,
    weights: AttentionWeights,
    options: SelfAttentionOptions & { trace: true },
  ): Required<Pick<SelfAttentionResult<OutputOf<Input>>, "steps">> & SelfAttentionResult<OutputOf<Input>>;
  selfAttention<Input extends TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">>(
    x: Input,
    weights: AttentionWeights,
    options: SelfAttentionOptions,
  ): SelfAttentionResult<OutputOf<Input>>;

  /**
   * A layer that keeps its weights packed in WASM memory and is called many times: `layer.forward(x, options)`. It holds memory until `dispose()`.
   *
   * ```ts
   * using layer = attn.createMultiHeadAttention({ numHeads: 12, weights, prefix: "encoder.layer.0.attention" });
   * const { output } = layer.forward(x, { mask });
   * ```
   *
   * @param options - Weights, by this package's names or those of a file, and `numHeads`; see {@link MultiHeadAttentionOptions}.
   * @throws AttentionError `"option"` for names that fit no family (the message lists those found and those wanted), `"shape"`, `"dtype"`, `"memory"` or
   *   `"disposed"`; nothing is held then.
   */
  createMultiHeadAttention(options: MultiHeadAttentionOptions): MultiHeadAttention;

  /**
   * A cache of keys and values for decoding, see {@link KvCache}. It holds memory until `dispose()`.
   *
   * @param options - Sizes, capacity, and how it behaves when it is full; see {@link KvCacheOptions}.
   * @throws AttentionError `"option"`, `"memory"` or `"disposed"`.
   */
  createKvCache(options: KvCacheOptions): KvCache;

  /**
   * Rotary positions (RoFormer, arXiv:2104.09864, section 3.2): each pair of elements is turned by the angle position · frequency.
   *
   * ```text
   * y[first]  = x[first] · cos - x[second] · sin        halves:       first = i,  second = i + rotaryDim / 2
   * y[second] = x[second] · cos + x[first] · sin        interleaved:  first = 2i, second = 2i + 1
   * ```
   *
   * @param x - [batch, heads, seq, dim], [heads, seq, dim] or [seq, dim]; other orders by `layout`.
   * @param options - Base and scaling, or tables; positions; pairing; see {@link RotaryEmbeddingOptions}.
   * @returns A new tensor of the shape and element type of x, or `out`.
   * @throws AttentionError `"shape"` (an odd width among others), `"dtype"`, `"option"`, `"memory"` or `"disposed"`; nothing was written then.
   */
  rotaryEmbedding<Input extends TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">>(
    x: Input,
    options?: RotaryEmbeddingOptions,
  ): OutputOf<Input>;

  /**
   * A tensor in the instance's WebAssembly memory, filled with 0: given to a call it costs no copy; as `out` it receives the result in place.
   * It holds memory until `dispose()`.
   *
   * @param shape - Size of each axis.
   * @param options - `dtype`: `"float32"` (default), `"float16"` (data is a `Uint16Array` of the bits) or `"uint8"` (masks).
   * @throws AttentionError `"shape"`, `"option"`, `"memory"` or `"disposed"`.
   */
  buffer(shape: readonly number[]): AttentionBuffer;
  buffer<Type extends BufferDType>(shape: readonly number[], options: { readonly dtype: Type }): AttentionBuffer<Type>;

  /** See the function of the same name. */
  alibiSlopes(numHeads: number): Float32Array;

  /**
   * Ends the threads, if there are any, and makes every further use throw `"disposed"`. Twice is silent. The memory itself goes when the instance and the
   * objects made by it are no longer referred to.
   */
  dispose(): void;
  [Symbol.dispose](): void;
}

const BUFFER_OPTIONS: ReadonlySet<string> = new Set(["dtype"]);

class Instance {
  readonly #engine: Engine;
  readonly selection: Selection;

  constructor(engine: Engine, selection: Selection) {
    this.#engine = engine;
    this.selection = Object.freeze(selection);
  }

  get variant(): "simd" | "relaxed" {
    return this.selection.variant;
  }

  get threads(): number {
    return this.selection.threads;
  }

  get memory(): MemoryUsage {
    this.#engine.checkAlive();
    return this.#engine.memory.usage;
  }

  get disposed(): boolean {
    return this.#engine.disposed;
  }

  scaledDotProductAttention(
    query: unknown,
    key: unknown,
    value?: unknown,
    options?: ScaledDotProductAttentionOptions,
  ): ScaledDotProductAttentionResult<unknown> {
    return scaledDotProductAttention(this.#engine, query, key, value, options);
  }

  selfAttention(x: unknown, weights: unknown, options: SelfAttentionOptions): SelfAttentionResult<unknown> {
    return selfAttention(this.#engine, x, weights, options);
  }

  createMultiHeadAttention(options: MultiHeadAttentionOptions): MultiHeadAttention {
    this.#engine.checkAlive();
    return new WasmMultiHeadAttention(this.#engine, options);
  }

  createKvCache(options: KvCacheOptions): KvCache {
    this.#engine.checkAlive();
    return new WasmKvCache(this.#engine, options);
  }

  rotaryEmbedding(x: unknown, options?: RotaryEmbeddingOptions): unknown {
    return rotaryEmbedding(this.#engine, x, options);
  }

  buffer(shape: readonly number[], options?: { readonly dtype?: BufferDType }): WasmBuffer {
    this.#engine.checkAlive();
    if (options !== undefined) checkOptionNames(options, BUFFER_OPTIONS, "options");
    return new WasmBuffer(this.#engine, shape, options?.dtype === undefined ? "float32" : options.dtype);
  }

  alibiSlopes(numHeads: number): Float32Array {
    return alibiSlopes(numHeads);
  }

  dispose(): void {
    this.#engine.dispose();
  }

  declare [Symbol.dispose]: () => void;

  static {
    Object.defineProperty(this.prototype, disposeSymbol, { value: this.prototype.dispose, configurable: true, writable: true });
  }
}

/** Binds the methods to an engine. */
export function createInstance(engine: Engine, selection: Selection): Attention {
  return new Instance(engine, selection) as unknown as Attention;
}
