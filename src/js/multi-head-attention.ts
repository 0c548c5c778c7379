/// <reference lib="esnext.disposable" preserve="true" />
/** A layer whose weights stay packed in WASM memory: `attn.createMultiHeadAttention(...)`. */
import { SCORE_OPTIONS, type ScoreOptions } from "./attention-options.js";
import type { AttentionBuffer } from "./buffer.js";
import { disposeSymbol } from "./dispose.js";
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failDisposed } from "./errors.js";
import type { OutputOf } from "./instance.js";
import { callLayer, LAYER_CALL_OPTIONS, type LayerCallOptions, type LayerCallResult } from "./layer-call.js";
import {
  checkLayer,
  readEpsilon,
  readLayout,
  type AttentionWeights,
  type GivenSizes,
  type WeightLayout,
  type WeightLike,
} from "./layer-weights.js";
import { packLayer, type PackedLayer } from "./packed-layer.js";
import { readRotary, type CheckedRotary, type RotaryOptions } from "./rotary.js";
import type { TensorLike } from "./tensor.js";
import { readWeights } from "./weight-family.js";

/** Options of `createMultiHeadAttention`. For each one only `undefined` means "not given". */
export interface MultiHeadAttentionOptions {
  /**
   * The weights: by this package's names, see {@link AttentionWeights}, or an object or Map of tensors under the names of a file: PyTorch's
   * nn.MultiheadAttention (`in_proj_weight`, …), BERT (`self.query.weight`, …), GPT-2 (`c_attn.weight`, …, [in, out]), Llama, Qwen and Mistral
   * (`q_proj.weight`, …), Vision Transformer (`qkv.weight`, …), Keras and TensorFlow.js (`query/kernel`, …). float32, float16 or bfloat16.
   * They are copied; the tensors are not needed any more afterwards.
   */
  weights: AttentionWeights | Readonly<Record<string, WeightLike>> | ReadonlyMap<string, WeightLike>;
  /** Only names that begin with this belong to the layer, such as `"encoder.layer.3.attention"`. Default: all names. */
  prefix?: string | undefined;
  /** Number of query heads. */
  numHeads: number;
  /** Width of x. Default: as wide as fits the weights; given, it is checked. The same holds for the next five. */
  embedDim?: number | undefined;
  /** Number of key and value heads; divides numHeads. */
  numKvHeads?: number | undefined;
  /** Width of a head's query and key. */
  headDim?: number | undefined;
  /** Width of a head's value. */
  valueDim?: number | undefined;
  /** Width of what keys are projected from (cross attention). */
  kDim?: number | undefined;
  /** Width of what values are projected from. */
  vDim?: number | undefined;
  /** Order of the axes of the weight matrices. Default: that of the family, `"out-in"` for this package's names. */
  weightLayout?: WeightLayout | undefined;
  /** Rotary positions of queries and keys. Default: none. */
  rotary?: RotaryOptions | undefined;
  /** Added to the mean square in the norm of queries and keys, where weights have one. Default: 1e-6. */
  normEpsilon?: number | undefined;
  /** Options of every `forward` that does not say otherwise. */
  defaults?: Pick<ScoreOptions, "causal" | "window" | "scale" | "softcap" | "alibiSlopes" | "sinks"> | undefined;
}

/** Options of `forward`: those of `scaledDotProductAttention` and what a layer adds. For each one only `undefined` means "not given". */
export interface ForwardOptions extends LayerCallOptions {}

type Input = TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">;

/**
 * Multi-head attention with its projections, for self and cross attention, with or without a cache. The weights stay in WASM memory, packed for the
 * matrix kernel, until `dispose()` (or `using`).
 */
export interface MultiHeadAttention {
  readonly embedDim: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  /** Width of what keys, and values, are projected from. */
  readonly kDim: number;
  readonly vDim: number;
  /** Width of the output. */
  readonly outputDim: number;
  /** Bytes of WebAssembly memory that the layer holds. */
  readonly memory: number;
  /** True after `dispose()`. */
  readonly disposed: boolean;

  /**
   * Computes the layer, see `Attention.selfAttention` for the seven steps.
   *
   * @param x - [seqLen, embedDim] or [batch, seqLen, embedDim].
   * @param options - See {@link ForwardOptions}.
   * @returns `output`, shaped like x with the width `outputDim`, float16 if x is; `weights` with `returnWeights`. New arrays that belong to the caller.
   * @throws AttentionError `"shape"`, `"dtype"`, `"option"`, `"memory"` or `"disposed"`; nothing was written then, and a cache is as it was.
   */
  forward<X extends Input>(x: X, options?: ForwardOptions): LayerCallResult<OutputOf<X>>;
  /** Frees the memory. Twice is silent; use after it throws `"disposed"`. */
  dispose(): void;
  [Symbol.dispose](): void;
}

const OPTION_NAMES: ReadonlySet<string> = new Set([
  "weights",
  "prefix",
  "numHeads",
  "embedDim",
  "numKvHeads",
  "headDim",
  "valueDim",
  "kDim",
  "vDim",
  "weightLayout",
  "rotary",
  "normEpsilon",
  "defaults",
]);
const DEFAULT_NAMES: ReadonlySet<string> = new Set(["causal", "window", "scale", "softcap", "alibiSlopes", "sinks"]);
const FORWARD_OPTIONS: ReadonlySet<string> = new Set([...SCORE_OPTIONS, ...LAYER_CALL_OPTIONS]);

/** The class behind {@link MultiHeadAttention}. */
export class WasmMultiHeadAttention implements MultiHeadAttention {
  readonly #engine: Engine;
  readonly #layer: PackedLayer;
  readonly #rotary: CheckedRotary | undefined;
  readonly #defaults: MultiHeadAttentionOptions["defaults"];
  #disposed = false;

  constructor(engine: Engine, options: MultiHeadAttentionOptions) {
    checkOptionNames(options, OPTION_NAMES, "options");
    const { weights, prefix = "", weightLayout, rotary, normEpsilon, defaults } = options;
    if (typeof prefix !== "string") fail("option", "options.prefix", "a string", describeValue(prefix));
    if (defaults !== undefined) checkOptionNames(defaults, DEFAULT_NAMES, "options.defaults");
    const layout = weightLayout === undefined ? undefined : readLayout(weightLayout);
    const parts = readWeights(weights, prefix, layout);
    const sizes = checkLayer(parts, options as GivenSizes);
    this.#rotary = rotary === undefined ? undefined : readRotary(rotary, "options.rotary", sizes.headDim);
    const epsilon = readEpsilon(normEpsilon);
    this.#engine = engine;
    this.#defaults = defaults === undefined ? undefined : { ...defaults };
    this.#layer = packLayer(engine, parts, sizes, epsilon, "createMultiHeadAttention");
    engine.registerForCleanup(this, this.#layer.pointer);
  }

  get embedDim(): number {
    return this.#layer.sizes.embedDim;
  }
  get numHeads(): number {
    return this.#layer.sizes.numHeads;
  }
  get numKvHeads(): number {
    return this.#layer.sizes.numKvHeads;
  }
  get headDim(): number {
    return this.#layer.sizes.headDim;
  }
  get valueDim(): number {
    return this.#layer.sizes.valueDim;
  }
  get kDim(): number {
    return this.#layer.sizes.keyDim;
  }
  get vDim(): number {
    return this.#layer.sizes.valueInputDim;
  }
  get outputDim(): number {
    return this.#layer.sizes.outputDim;
  }
  get memory(): number {
    return this.#disposed ? 0 : this.#layer.bytes;
  }
  get disposed(): boolean {
    return this.#disposed || this.#engine.disposed;
  }

  forward<X extends Input>(x: X, options?: ForwardOptions): LayerCallResult<OutputOf<X>> {
    if (this.#disposed) failDisposed("this layer");
    this.#engine.checkAlive();
    if (options !== undefined) checkOptionNames(options, FORWARD_OPTIONS, "options");
    const merged = this.#defaults === undefined ? options : withDefaults(options, this.#defaults);
    return callLayer(this.#engine, this.#layer, x, merged, false, "forward", this.#rotary) as LayerCallResult<OutputOf<X>>;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#engine.unregisterFromCleanup(this);
    if (!this.#engine.disposed) this.#engine.memory.release(this.#layer.pointer);
  }

  declare [Symbol.dispose]: () => void;

  static {
    Object.defineProperty(this.prototype, disposeSymbol, { value: this.prototype.dispose, configurable: true, writable: true });
  }
}

function withDefaults(options: ForwardOptions | undefined, defaults: NonNullable<MultiHeadAttentionOptions["defaults"]>): ForwardOptions {
  const merged: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(options ?? {})) if (value !== undefined) merged[name] = value;
  return merged;
}
