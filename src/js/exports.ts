/** What both entries of the package export, beside their own `loadAttention`. */
export { alibiSlopes } from "./alibi.js";
export { AttentionError, type AttentionErrorCode, type AttentionErrorDetails } from "./errors.js";
export {
  tensor,
  type DType,
  type Float16Data,
  type FloatData,
  type FloatTensor,
  type NestedBooleans,
  type NestedNumbers,
  type Tensor,
  type TensorLike,
} from "./tensor.js";
export type { Alignment, BiasLike, MaskLike, ReturnWeights, ScoreOptions } from "./attention-options.js";
export type { AttentionBuffer, BufferData, BufferDType } from "./buffer.js";
export type { Attention, Selection } from "./instance.js";
export type { MemoryUsage } from "./memory.js";
export type {
  AskedResult,
  AskingOptions,
  Layout,
  ScaledDotProductAttentionOptions,
  ScaledDotProductAttentionResult,
  ScoreStage,
} from "./scaled-dot-product-attention.js";
export type { LayerCallOptions, LayerCallResult, SelfAttentionSteps } from "./layer-call.js";
export type { AttentionWeights, WeightLayout, WeightLike } from "./layer-weights.js";
export type { KvAppendOptions, KvCache, KvCacheOptions } from "./kv-cache.js";
export type { ForwardOptions, MultiHeadAttention, MultiHeadAttentionOptions } from "./multi-head-attention.js";
export type { PositionsLike, RotaryEmbeddingOptions, RotaryOptions } from "./rotary.js";
export { rotaryFrequencies, type RotaryFrequencies, type RotaryScaling } from "./rotary-scaling.js";
export type { SelfAttentionOptions, SelfAttentionResult } from "./self-attention.js";
export {
  fromSafetensors,
  openSafetensors,
  type SafetensorsFile,
  type SafetensorsInfo,
  type SafetensorsOptions,
  type SafetensorsReadOptions,
  type SafetensorsSource,
  type SafetensorsTensor,
} from "./safetensors.js";
