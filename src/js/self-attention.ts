/** Self-attention end to end, from plain weights: `attn.selfAttention(x, weights, options)`. */
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail } from "./errors.js";
import { callLayer, LAYER_CALL_OPTIONS, type LayerCallOptions, type LayerCallResult, type SelfAttentionSteps } from "./layer-call.js";
import { checkLayer, readEpsilon, readLayout, readOwnNames, WEIGHT_NAMES, type GivenSizes, type WeightLayout } from "./layer-weights.js";
import { packLayer } from "./packed-layer.js";
import type { FloatTensor, Tensor } from "./tensor.js";

/** Options of `selfAttention`. For each one only `undefined` means "not given". */
export interface SelfAttentionOptions extends LayerCallOptions {
  /** Number of query heads. */
  numHeads: number;
  /** Number of key and value heads; divides numHeads. Default: as many as fit wk, numHeads for weights of equal size. */
  numKvHeads?: number | undefined;
  /** Width of a head's query and key. Default: as wide as fits wq. */
  headDim?: number | undefined;
  /** Order of the axes of the weight matrices. Default: `"out-in"`, as PyTorch stores them. */
  weightLayout?: WeightLayout | undefined;
  /** Added to the mean square in the norm of queries and keys, where weights have one. Default: 1e-6. */
  normEpsilon?: number | undefined;
  /** Return every intermediate result as `steps`. Takes memory and time for four matrices of seqLenQ × seqLenK per head. Default: `false`. */
  trace?: boolean | undefined;
}

/** What `selfAttention` returns: new arrays that belong to the caller. */
export interface SelfAttentionResult<Output = Tensor> extends LayerCallResult<Output> {
  /** With `trace: true`. */
  steps?: SelfAttentionSteps;
}

const OPTION_NAMES: ReadonlySet<string> = new Set([
  ...LAYER_CALL_OPTIONS,
  "numHeads",
  "numKvHeads",
  "headDim",
  "weightLayout",
  "normEpsilon",
  "trace",
]);
const WEIGHTS: ReadonlySet<string> = new Set(WEIGHT_NAMES);

/** See `Attention.selfAttention` in instance.ts for what callers are told. */
export function selfAttention(
  engine: Engine,
  x: unknown,
  weights: unknown,
  options: SelfAttentionOptions,
): SelfAttentionResult<FloatTensor> {
  engine.checkAlive();
  checkOptionNames(options, OPTION_NAMES, "options");
  checkOptionNames(weights as object, WEIGHTS, "weights");
  const { numHeads, numKvHeads, headDim, trace } = options;
  if (trace !== undefined && typeof trace !== "boolean") fail("option", "options.trace", "true or false", describeValue(trace));
  const given: GivenSizes = { numHeads, numKvHeads, headDim };
  const parts = readOwnNames(weights as Record<string, unknown>, readLayout(options.weightLayout));
  const sizes = checkLayer(parts, given);
  const layer = packLayer(engine, parts, sizes, readEpsilon(options.normEpsilon), "selfAttention");
  try {
    return callLayer(engine, layer, x, options, trace === true, "selfAttention");
  } finally {
    engine.memory.release(layer.pointer);
  }
}
