/**
 * `attention-wasm/onnx`: ONNX's attention operators by their own names and rules, computed by the package's public functions.
 *
 * ```ts
 * import { loadAttention } from "attention-wasm";
 * import { attention } from "attention-wasm/onnx";
 *
 * const attn = await loadAttention();
 * const { Y, present_key, present_value } = attention(attn, { Q, K, V, past_key, past_value }, { is_causal: 1 });
 * ```
 *
 * Inputs are objects with `data` and `shape` or `dims`: float32 or float16; yes/no masks as `Uint8Array` or booleans. int64 inputs are plain arrays of
 * numbers, `Int32Array`s or `BigInt64Array`s. float64 and bfloat16 are refused, since nothing here computes in them. Outputs are new arrays of the caller.
 *
 * @packageDocumentation
 */
export {
  attention,
  type AttentionAttributes,
  type AttentionInputs,
  type AttentionMask,
  type AttentionOutputName,
  type AttentionOutputs,
} from "./onnx-attention.js";
export {
  rotaryEmbedding,
  type RotaryEmbeddingAttributes,
  type RotaryEmbeddingInputs,
  type RotaryEmbeddingOutputs,
} from "./onnx-rotary-embedding.js";
export {
  tensorScatter,
  type TensorScatterAttributes,
  type TensorScatterInputs,
  type TensorScatterOutputs,
} from "./onnx-tensor-scatter.js";
export type { FloatInput, OutputLike } from "./onnx-tensors.js";
export type { IntegerData, IntegersLike } from "./onnx-values.js";
