/** ONNX's Attention (opset 23, 24, and the window of opset 25) on top of `scaledDotProductAttention`. */
import { checkOptionNames, describeValue, fail } from "./errors.js";
import type { Attention } from "./instance.js";
import type { AttentionBuffer } from "./buffer.js";
import { readAttention, type CheckedAttention } from "./onnx-attention-inputs.js";
import {
  concatenated,
  elementsOf,
  reshaped,
  roundedLike,
  swapMiddle,
  tensorLike,
  type FloatInput,
  type OutputLike,
} from "./onnx-tensors.js";
import { checkInstance, type IntegersLike } from "./onnx-values.js";
import type { Operand } from "./operands.js";
import type { ScaledDotProductAttentionOptions } from "./scaled-dot-product-attention.js";
import type { FloatTensor, NestedBooleans, NestedNumbers, Tensor, TensorLike } from "./tensor.js";

/** What attn_mask may be: yes or no (`Uint8Array`, booleans, a buffer of type "uint8"), or numbers that are added (float32, float16, nested arrays). */
export type AttentionMask =
  | { readonly data: Uint8Array | readonly boolean[]; readonly shape: readonly number[] }
  | { readonly data: Uint8Array | readonly boolean[]; readonly dims: readonly number[] }
  | AttentionBuffer<"uint8">
  | NestedBooleans
  | NestedNumbers
  | FloatInput;

/**
 * Inputs of ONNX's Attention. B batch, S sequence of queries, L of new keys, P of past keys, T = P + L, H = q_num_heads, G = kv_num_heads (divides H),
 * D head_size, E v_head_size.
 */
export interface AttentionInputs {
  /** [B, H, S, D], or [B, S, H · D] with the attribute q_num_heads. */
  readonly Q: FloatInput;
  /** [B, G, L, D], or [B, L, G · D] with the attribute kv_num_heads; of Q's rank. */
  readonly K: FloatInput;
  /** [B, G, L, E], or [B, L, G · E] with the attribute kv_num_heads; of Q's rank. */
  readonly V: FloatInput;
  /**
   * Rank 1 to 4, broadcast to [B, H, S, T] as NumPy does, right-aligned (rank 3 is [H, S, T]). Booleans or `Uint8Array`: true = attend. Floats are added to
   * the scores. A last axis shorter than T (and longer than 1) is padded with "masked". Default: none.
   */
  readonly attn_mask?: AttentionMask | undefined;
  /** Keys before K [B, G, P, D], also where K has rank 3; of K's element type. Together with past_value. Default: none. */
  readonly past_key?: FloatInput | undefined;
  /** Values before V [B, G, P, E], also where V has rank 3; of V's element type. */
  readonly past_value?: FloatInput | undefined;
  /** Number of valid keys of each batch row [B], 0 to L; the rest of K and V is padding. Not together with past_key. Default: all. */
  readonly nonpad_kv_seqlen?: IntegersLike | undefined;
}

/** Attributes of ONNX's Attention. For each one only `undefined` means "not given". */
export interface AttentionAttributes {
  /**
   * 1: query i sees key j when j <= i + offset, where offset is P with a past, nonpad_kv_seqlen[b] - S with valid lengths (a negative one leaves leading rows
   * without keys), else 0. Default: 0.
   */
  readonly is_causal?: number | boolean | bigint | undefined;
  /** G: needed for rank 3; for rank 4 it may be given and must agree. */
  readonly kv_num_heads?: number | bigint | undefined;
  /** H: needed for rank 3; for rank 4 it may be given and must agree. */
  readonly q_num_heads?: number | bigint | undefined;
  /**
   * What qk_matmul_output holds: 0 the scaled scores (raw, also with softcap), 1 after softcap, 2 after softcap and masks (-Infinity where a query does not
   * see the key), 3 after the softmax (0 in rows without keys). Default: 0.
   */
  readonly qk_matmul_output_mode?: number | bigint | undefined;
  /** Factor on Q · K. Default: 1 / sqrt(D). */
  readonly scale?: number | undefined;
  /** Limit of the scores: softcap · tanh(score / softcap), before masks. Default: 0 = off. */
  readonly softcap?: number | undefined;
  /** TensorProto's number of a float type. The softmax is computed in float32 whatever is asked for. */
  readonly softmax_precision?: number | bigint | undefined;
  /** Opset 25: keys to the left of the own position (i + offset, as for is_causal) that are seen; -1 = all. Composes with is_causal. Default: -1. */
  readonly left_window_size?: number | bigint | undefined;
  /** Opset 25: the same to the right. Default: -1. */
  readonly right_window_size?: number | bigint | undefined;
}

/** Outputs of ONNX's Attention: new arrays that belong to the caller, in the element types of Q, K, V and Q. */
export interface AttentionOutputs<Inputs extends AttentionInputs = AttentionInputs> {
  /** [B, H, S, E], or [B, S, H · E] for inputs of rank 3. */
  Y: OutputLike<Inputs["Q"]>;
  /** past_key followed by K [B, G, T, D], also for inputs of rank 3. */
  present_key: OutputLike<Inputs["K"]>;
  /** past_value followed by V [B, G, T, E], also for inputs of rank 3. */
  present_value: OutputLike<Inputs["V"]>;
  /** [B, H, S, T], also for inputs of rank 3; see qk_matmul_output_mode. */
  qk_matmul_output: OutputLike<Inputs["Q"]>;
}

/** Names of the outputs. */
export type AttentionOutputName = keyof AttentionOutputs;

const OPTION_NAMES: ReadonlySet<string> = new Set(["outputs"]);
const OUTPUT_NAMES: readonly AttentionOutputName[] = ["Y", "present_key", "present_value", "qk_matmul_output"];

/**
 * ONNX's Attention.
 *
 * @param attn - What `loadAttention` gives.
 * @param inputs - See {@link AttentionInputs}; absent optional inputs are left out. None is changed.
 * @param attributes - See {@link AttentionAttributes}.
 * @param options - `outputs`: names of the outputs that are computed, as an ONNX node lists them. Default: all four. qk_matmul_output is the only one that costs
 *   S × T memory and a second pass over the scores, and the present ones are copies: `{ outputs: ["Y"] }` is the fast way.
 * @returns The outputs by name.
 * @throws AttentionError whose `argument` is ONNX's name, such as `"inputs.past_key"` or `"attributes.scale"`: `"shape"`, `"dtype"`, `"option"`, `"memory"` or
 *   `"disposed"`.
 */
export function attention<Inputs extends AttentionInputs, Name extends AttentionOutputName = AttentionOutputName>(
  attn: Attention,
  inputs: Inputs,
  attributes: AttentionAttributes = {},
  options: { readonly outputs?: readonly Name[] | undefined } = {},
): Pick<AttentionOutputs<Inputs>, Name> {
  checkInstance(attn);
  const wanted = readOutputs(options);
  const checked = readAttention(inputs, attributes);
  return compute(attn, checked, wanted) as Pick<AttentionOutputs<Inputs>, Name>;
}

function readOutputs(options: { readonly outputs?: readonly string[] | undefined }): ReadonlySet<string> {
  checkOptionNames(options, OPTION_NAMES, "options");
  const { outputs } = options;
  if (outputs === undefined) return new Set(OUTPUT_NAMES);
  if (!Array.isArray(outputs)) fail("option", "options.outputs", "an array of names", describeValue(outputs));
  for (const [i, name] of outputs.entries()) {
    if (!(OUTPUT_NAMES as readonly unknown[]).includes(name))
      fail("option", `options.outputs[${i}]`, OUTPUT_NAMES.join(", "), describeValue(name));
  }
  return new Set(outputs);
}

function compute(
  attn: Attention,
  checked: CheckedAttention,
  wanted: ReadonlySet<string>,
): Partial<Record<AttentionOutputName, FloatTensor>> {
  const { Q, K, V, pastKey, pastValue, isPositionsFirst, sizes } = checked;
  const { batch, heads, queries, keys, headDim, valueDim } = sizes;
  const result: Partial<Record<AttentionOutputName, FloatTensor>> = {};

  // A past is heads first whatever the inputs are, so with one everything is.
  const hasPast = pastKey !== undefined;
  const presentKey = hasPast || wanted.has("present_key") ? present(K, pastKey, checked, headDim) : undefined;
  const presentValue = hasPast || wanted.has("present_value") ? present(V, pastValue, checked, valueDim) : undefined;

  if (wanted.has("Y") || wanted.has("qk_matmul_output")) {
    const isSwapped = isPositionsFirst && hasPast;
    const shapes = isPositionsFirst ? splitShapes(checked) : undefined;
    let query: FloatTensor;
    if (isSwapped) query = tensorLike(swapMiddle(elementsOf(Q), [batch, queries, heads, headDim]), Q, [batch, heads, queries, headDim]);
    else query = reshaped(Q, shapes?.query ?? Array.from(Q.shape));
    const key = hasPast ? presentKey! : reshaped(K, shapes?.key ?? Array.from(K.shape));
    const value = hasPast ? presentValue! : reshaped(V, shapes?.value ?? Array.from(V.shape));
    const options = scoreOptions(checked, wanted.has("qk_matmul_output"));
    if (isPositionsFirst && !hasPast) options.layout = "bshd";

    const { output, weights, scores } = attn.scaledDotProductAttention(
      query as TensorLike,
      key as TensorLike,
      value as TensorLike,
      options,
    );
    if (wanted.has("Y")) result.Y = outputShaped(output, checked, isSwapped);
    const matrix: Tensor | undefined = weights ?? scores;
    if (matrix !== undefined) result.qk_matmul_output = roundedLike(matrix.data, Q, [batch, heads, queries, keys]);
  }
  if (wanted.has("present_key")) result.present_key = presentKey!;
  if (wanted.has("present_value")) result.present_value = presentValue!;
  return result;
}

/** The past followed by the new ones, heads first: always a copy. */
function present(now: Operand, past: Operand | undefined, { isPositionsFirst, sizes }: CheckedAttention, width: number): FloatTensor {
  const { batch, kvHeads, newKeys, keys } = sizes;
  let elements = elementsOf(now);
  if (isPositionsFirst) elements = swapMiddle(elements, [batch, newKeys, kvHeads, width]);
  if (past !== undefined) elements = concatenated(elementsOf(past), elements, batch * kvHeads);
  else if (!isPositionsFirst) elements = elements.slice();
  return tensorLike(elements, now, [batch, kvHeads, keys, width]);
}

/** [B, S, H · D] as [B, S, H, D]. */
function splitShapes({ sizes: { batch, heads, kvHeads, queries, newKeys, headDim, valueDim } }: CheckedAttention) {
  return { query: [batch, queries, heads, headDim], key: [batch, newKeys, kvHeads, headDim], value: [batch, newKeys, kvHeads, valueDim] };
}

function scoreOptions(checked: CheckedAttention, wantsMatrix: boolean): ScaledDotProductAttentionOptions {
  const { masks, nonpad, isCausal, window, scale, softcap, outputMode, sizes } = checked;
  const options: ScaledDotProductAttentionOptions = { ...masks, scale, softcap, keyLengths: nonpad };
  if (isCausal || window !== undefined) {
    options.causal = isCausal;
    options.window = window;
    options.queryOffset = nonpad === undefined ? sizes.past : nonpad.map((length) => length - sizes.queries);
  }
  if (wantsMatrix) {
    if (outputMode === 3) options.returnWeights = true;
    else options.returnScores = (["scaled", "softcapped", "masked"] as const)[outputMode as 0 | 1 | 2];
  }
  return options;
}

/** The output in the shape that Q's rank asks for. */
function outputShaped(output: FloatTensor, { Q, isPositionsFirst, sizes }: CheckedAttention, isSwapped: boolean): FloatTensor {
  if (!isPositionsFirst) return output;
  const { batch, heads, queries, valueDim } = sizes;
  const shape = [batch, queries, heads * valueDim];
  if (!isSwapped) return { ...output, shape } as FloatTensor;
  const data = output.data;
  const elements =
    data instanceof Float32Array || data instanceof Uint16Array ? data : new Uint16Array(data.buffer, data.byteOffset, data.length);
  return tensorLike(swapMiddle(elements, [batch, heads, queries, valueDim]), Q, shape);
}
