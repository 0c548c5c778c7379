/** Reads and checks what ONNX's Attention is given, under ONNX's names, before anything is computed. */
import { checkOptionNames, describeValue, fail, failWith, formatShape } from "./errors.js";
import type { AttentionAttributes, AttentionInputs } from "./onnx-attention.js";
import { readMask, type MaskOptions } from "./onnx-mask.js";
import { readFlag, readHeads, readInteger, readIntegers } from "./onnx-values.js";
import { readTensor, type Operand } from "./operands.js";

const INPUT_NAMES: ReadonlySet<string> = new Set(["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]);
const ATTRIBUTE_NAMES: ReadonlySet<string> = new Set([
  "is_causal",
  "kv_num_heads",
  "q_num_heads",
  "qk_matmul_output_mode",
  "scale",
  "softcap",
  "softmax_precision",
  "left_window_size",
  "right_window_size",
]);
/** TensorProto's numbers for float, float16, double and bfloat16. */
const FLOAT_TYPES: readonly number[] = [1, 10, 11, 16];
const MAX_INT32 = 2 ** 31 - 1;

/** Sizes of one call; `past` is the number of past keys, `keys` that of past and new ones together. */
export interface OnnxSizes {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
  readonly newKeys: number;
  readonly past: number;
  readonly keys: number;
  readonly headDim: number;
  readonly valueDim: number;
}

/** Inputs and attributes after checking. */
export interface CheckedAttention {
  readonly Q: Operand;
  readonly K: Operand;
  readonly V: Operand;
  readonly pastKey: Operand | undefined;
  readonly pastValue: Operand | undefined;
  /** True for inputs of rank 3: [batch, sequence, heads · width]. */
  readonly isPositionsFirst: boolean;
  readonly sizes: OnnxSizes;
  readonly masks: MaskOptions;
  readonly nonpad: readonly number[] | undefined;
  readonly isCausal: boolean;
  readonly window: { readonly left: number; readonly right: number } | undefined;
  readonly scale: number | undefined;
  readonly softcap: number;
  readonly outputMode: number;
}

/** Throws for everything that ONNX's rules do not allow. */
export function readAttention(inputs: AttentionInputs, attributes: AttentionAttributes): CheckedAttention {
  checkOptionNames(inputs, INPUT_NAMES, "inputs");
  checkOptionNames(attributes, ATTRIBUTE_NAMES, "attributes");

  const isCausal = readFlag(attributes.is_causal, "attributes.is_causal");
  const left = readWindow(attributes.left_window_size, "attributes.left_window_size");
  const right = readWindow(attributes.right_window_size, "attributes.right_window_size");
  const scale = readFloat(attributes.scale, "attributes.scale");
  const softcap = readFloat(attributes.softcap, "attributes.softcap") ?? 0;
  if (softcap < 0) fail("option", "attributes.softcap", "a positive number, or 0 for none", describeValue(softcap));
  const outputMode =
    attributes.qk_matmul_output_mode === undefined
      ? 0
      : readInteger(attributes.qk_matmul_output_mode, "attributes.qk_matmul_output_mode", 0, 3);
  checkPrecision(attributes.softmax_precision);

  const Q = readTensor(inputs.Q, "inputs.Q");
  const K = readTensor(inputs.K, "inputs.K");
  const V = readTensor(inputs.V, "inputs.V");
  const pastKey = inputs.past_key === undefined ? undefined : readTensor(inputs.past_key, "inputs.past_key");
  const pastValue = inputs.past_value === undefined ? undefined : readTensor(inputs.past_value, "inputs.past_value");
  const sizes = readSizes(Q, K, V, pastKey, pastValue, attributes);
  const masks =
    inputs.attn_mask === undefined
      ? {}
      : readMask(inputs.attn_mask, "inputs.attn_mask", [sizes.batch, sizes.heads, sizes.queries, sizes.keys]);

  let nonpad: readonly number[] | undefined;
  if (inputs.nonpad_kv_seqlen !== undefined) {
    if (pastKey !== undefined) {
      failWith("option", "inputs.nonpad_kv_seqlen: expected no past_key beside it (K and V are the whole cache then), got both", {
        argument: "inputs.nonpad_kv_seqlen",
        expected: "no past_key beside it",
        got: "both",
      });
    }
    const list = readIntegers(inputs.nonpad_kv_seqlen, "inputs.nonpad_kv_seqlen", 0, sizes.keys);
    if (list.shape.length !== 1 || list.values.length !== sizes.batch) {
      fail("shape", "inputs.nonpad_kv_seqlen", `shape [${sizes.batch}] (batch ${sizes.batch})`, formatShape(list.shape));
    }
    nonpad = list.values;
  }
  const window = left < 0 && right < 0 ? undefined : { left, right };
  return {
    Q,
    K,
    V,
    pastKey,
    pastValue,
    isPositionsFirst: Q.shape.length === 3,
    sizes,
    masks,
    nonpad,
    isCausal,
    window,
    scale,
    softcap,
    outputMode,
  };
}

// ---- attributes ----------------------------------------------------------------------------------------------------

function readFloat(value: unknown, argument: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number") fail("dtype", argument, "a number", describeValue(value));
  if (!Number.isFinite(Math.fround(value))) fail("option", argument, "a finite number", describeValue(value));
  return value;
}

function readWindow(value: unknown, argument: string): number {
  return value === undefined ? -1 : readInteger(value, argument, -1, MAX_INT32);
}

// Everything is computed in float32 whatever is asked for; only what is no float type at all is an error.
function checkPrecision(value: unknown): void {
  if (value === undefined) return;
  const type = readInteger(value, "attributes.softmax_precision", 0, MAX_INT32);
  if (!FLOAT_TYPES.includes(type))
    fail("option", "attributes.softmax_precision", "1 (float), 10 (float16), 11 (double) or 16 (bfloat16)", describeValue(value));
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

interface Extents {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
}

function readSizes(
  Q: Operand,
  K: Operand,
  V: Operand,
  pastKey: Operand | undefined,
  pastValue: Operand | undefined,
  attributes: AttentionAttributes,
): OnnxSizes {
  const queryHeads = readHeads(attributes.q_num_heads, "attributes.q_num_heads");
  const kvHeads = readHeads(attributes.kv_num_heads, "attributes.kv_num_heads");
  const rank = Q.shape.length;
  if (rank !== 3 && rank !== 4) {
    fail(
      "shape",
      "inputs.Q",
      "[batch, q_num_heads, sequence, head_size] or [batch, sequence, q_num_heads · head_size]",
      `shape ${formatShape(Q.shape)}`,
    );
  }
  for (const operand of [K, V]) {
    if (operand.shape.length !== rank) fail("shape", operand.argument, `rank ${rank} like Q`, `shape ${formatShape(operand.shape)}`);
  }
  const q = extents(Q, queryHeads, "q_num_heads");
  const k = extents(K, kvHeads, "kv_num_heads");
  const v = extents(V, kvHeads, "kv_num_heads");
  expectSize(K, "batch", k.batch, q.batch, "Q");
  expectSize(V, "batch", v.batch, q.batch, "Q");
  expectSize(V, "heads", v.heads, k.heads, "K");
  expectSize(K, "head_size", k.width, q.width, "Q");
  expectSize(V, "sequence", v.length, k.length, "K");
  if (q.width === 0) fail("shape", "inputs.Q", "head_size of at least 1", `shape ${formatShape(Q.shape)}`);
  if (q.heads === 0) fail("shape", "inputs.Q", "at least 1 head", `shape ${formatShape(Q.shape)}`);
  if (k.heads === 0 || q.heads % k.heads !== 0) {
    const argument = rank === 3 ? "attributes.kv_num_heads" : "inputs.K";
    fail("shape", argument, `a number of heads that divides the ${q.heads} of Q`, `${k.heads} (shape ${formatShape(K.shape)})`);
  }
  if ((pastKey === undefined) !== (pastValue === undefined)) {
    const missing = pastKey === undefined ? "past_key" : "past_value";
    fail("option", `inputs.${missing}`, "past_key and past_value together", "only one of them");
  }
  let past = 0;
  if (pastKey !== undefined && pastValue !== undefined) {
    past = pastKey.shape.length === 4 ? pastKey.shape[2]! : 0;
    checkPast(pastKey, K, [q.batch, k.heads, past, k.width], "head_size");
    checkPast(pastValue, V, [q.batch, k.heads, past, v.width], "v_head_size");
  }
  return {
    batch: q.batch,
    heads: q.heads,
    kvHeads: k.heads,
    queries: q.length,
    newKeys: k.length,
    past,
    keys: past + k.length,
    headDim: q.width,
    valueDim: v.width,
  };
}

function extents(operand: Operand, heads: number | undefined, attribute: string): Extents {
  const { shape, argument } = operand;
  if (shape.length === 4) {
    if (heads !== undefined && shape[1] !== heads)
      fail("shape", argument, `${heads} heads, as ${attribute} says`, `shape ${formatShape(shape)}`);
    return { batch: shape[0]!, heads: shape[1]!, length: shape[2]!, width: shape[3]! };
  }
  if (heads === undefined) fail("option", `attributes.${attribute}`, "a number of heads, which inputs of rank 3 need", "undefined");
  if (shape[2]! % heads !== 0) fail("shape", argument, `a last axis that ${attribute} ${heads} divides`, `shape ${formatShape(shape)}`);
  return { batch: shape[0]!, heads, length: shape[1]!, width: shape[2]! / heads };
}

function expectSize(operand: Operand, name: string, size: number, wanted: number, like: string): void {
  if (size !== wanted)
    fail("shape", operand.argument, `${name} ${wanted} like ${like}`, `${name} ${size} (shape ${formatShape(operand.shape)})`);
}

function checkPast(past: Operand, like: Operand, shape: readonly number[], width: string): void {
  if (past.shape.length !== 4 || shape.some((size, axis) => past.shape[axis] !== size)) {
    const expected = `[batch ${shape[0]}, kv_num_heads ${shape[1]}, past_sequence, ${width} ${shape[3]}]${past.argument === "inputs.past_value" ? ` with past_sequence ${shape[2]} like past_key` : ""}`;
    fail("shape", past.argument, expected, `shape ${formatShape(past.shape)}`);
  }
  if (past.dtype !== like.dtype) fail("dtype", past.argument, `${like.dtype} like ${like.argument}`, past.dtype);
}
