/** The ONNX entry given one wrong thing at a time: an AttentionError with ONNX's name of it, and the next call works. */
import { type Attention, AttentionError, loadAttention } from "attention-wasm";
import { attention, rotaryEmbedding, tensorScatter } from "attention-wasm/onnx";
import { beforeAll, describe, expect, test } from "vitest";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const zeros = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });
const half = (...shape: number[]) => ({ data: new Uint16Array(shape.reduce((a, b) => a * b, 1)), shape, dtype: "float16" });
const detached = (...shape: number[]) => {
  const tensor = zeros(...shape);
  structuredClone(tensor.data, { transfer: [tensor.data.buffer] });
  return tensor;
};

type Wrong = [what: string, argument: string, code: string, change: Record<string, unknown>];

/** Calls with one change and expects the error; then without it, and expects none. */
function expectError(
  operator: (attn: Attention, inputs: never, attributes: never, options?: never) => unknown,
  right: { inputs: object; attributes?: object },
  [what, argument, code, change]: Wrong,
): void {
  test(`${what} → ${argument}`, () => {
    const { inputs = {}, attributes = {}, options } = change as { inputs?: object; attributes?: object; options?: object };
    const call = () =>
      operator(attn, { ...right.inputs, ...inputs } as never, { ...right.attributes, ...attributes } as never, options as never);
    let error: unknown;
    try {
      call();
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(AttentionError);
    const { message, ...found } = error as AttentionError;
    expect(found).toMatchObject({ argument, code, expected: expect.any(String), got: expect.any(String) });
    expect(message.startsWith(argument)).toBe(true);
    operator(attn, right.inputs as never, (right.attributes ?? {}) as never);
  });
}

describe("attention", () => {
  const right = { inputs: { Q: zeros(2, 4, 3, 8), K: zeros(2, 2, 5, 8), V: zeros(2, 2, 5, 6) } };
  const past = { past_key: zeros(2, 2, 7, 8), past_value: zeros(2, 2, 7, 6) };
  const wrong: Wrong[] = [
    ["no Q", "inputs.Q", "dtype", { inputs: { Q: undefined } }],
    ["a bare array", "inputs.K", "dtype", { inputs: { K: new Float32Array(160) } }],
    ["float64", "inputs.V.data", "dtype", { inputs: { V: { data: new Float64Array(120), shape: [2, 2, 5, 6] } } }],
    ["Uint16Array without dtype", "inputs.Q", "dtype", { inputs: { Q: { data: new Uint16Array(192), shape: [2, 4, 3, 8] } } }],
    ["a detached array", "inputs.Q", "shape", { inputs: { Q: detached(2, 4, 3, 8) } }],
    ["a shape that does not fit the data", "inputs.Q", "shape", { inputs: { Q: { data: new Float32Array(5), shape: [2, 4, 3, 8] } } }],
    ["a NaN size", "inputs.Q", "shape", { inputs: { Q: { data: new Float32Array(0), shape: [2, 4, Number.NaN, 8] } } }],
    ["sizes whose product passes 2^32", "inputs.Q", "shape", { inputs: { Q: { data: new Float32Array(0), shape: [65536, 65536, 1, 1] } } }],
    ["rank 2", "inputs.Q", "shape", { inputs: { Q: zeros(3, 8) } }],
    ["K of another rank", "inputs.K", "shape", { inputs: { K: zeros(2, 5, 16) } }],
    ["K of another batch", "inputs.K", "shape", { inputs: { K: zeros(3, 2, 5, 8) } }],
    ["K of another width", "inputs.K", "shape", { inputs: { K: zeros(2, 2, 5, 7) } }],
    ["V of another length", "inputs.V", "shape", { inputs: { V: zeros(2, 2, 4, 6) } }],
    ["V of other heads", "inputs.V", "shape", { inputs: { V: zeros(2, 1, 5, 6) } }],
    ["head counts that do not divide", "inputs.K", "shape", { inputs: { K: zeros(2, 3, 5, 8), V: zeros(2, 3, 5, 6) } }],
    ["a width of 0", "inputs.Q", "shape", { inputs: { Q: zeros(2, 4, 3, 0), K: zeros(2, 2, 5, 0) } }],
    ["an unknown input", "inputs.mask", "option", { inputs: { mask: zeros(3, 5) } }],
    ["q_num_heads that contradicts Q", "inputs.Q", "shape", { attributes: { q_num_heads: 3 } }],
    ["kv_num_heads of 0", "attributes.kv_num_heads", "option", { attributes: { kv_num_heads: 0 } }],
    ["an unknown attribute", "attributes.is_casual", "option", { attributes: { is_casual: 1 } }],
    ["is_causal 2", "attributes.is_causal", "option", { attributes: { is_causal: 2 } }],
    ["is_causal as text", "attributes.is_causal", "dtype", { attributes: { is_causal: "1" } }],
    ["scale NaN", "attributes.scale", "option", { attributes: { scale: Number.NaN } }],
    ["scale null", "attributes.scale", "dtype", { attributes: { scale: null } }],
    ["softcap below 0", "attributes.softcap", "option", { attributes: { softcap: -1 } }],
    ["mode 4", "attributes.qk_matmul_output_mode", "option", { attributes: { qk_matmul_output_mode: 4 } }],
    ["softmax_precision of an int type", "attributes.softmax_precision", "option", { attributes: { softmax_precision: 7 } }],
    ["left_window_size below -1", "attributes.left_window_size", "option", { attributes: { left_window_size: -2 } }],
    ["right_window_size 0.5", "attributes.right_window_size", "option", { attributes: { right_window_size: 0.5 } }],
    ["a mask of another number of queries", "inputs.attn_mask", "shape", { inputs: { attn_mask: zeros(4, 5) } }],
    ["a mask longer than the keys", "inputs.attn_mask", "shape", { inputs: { attn_mask: zeros(3, 6) } }],
    ["a mask of rank 5", "inputs.attn_mask", "shape", { inputs: { attn_mask: zeros(1, 1, 1, 3, 5) } }],
    ["a mask of rank 0", "inputs.attn_mask", "shape", { inputs: { attn_mask: { data: Float32Array.of(0), shape: [] } } }],
    ["a mask of int32", "inputs.attn_mask.data", "dtype", { inputs: { attn_mask: { data: new Int32Array(15), shape: [3, 5] } } }],
    ["past_key alone", "inputs.past_value", "option", { inputs: { past_key: past.past_key } }],
    ["past_value alone", "inputs.past_key", "option", { inputs: { past_value: past.past_value } }],
    ["a past of other heads", "inputs.past_key", "shape", { inputs: { ...past, past_key: zeros(2, 4, 7, 8) } }],
    ["a past of two lengths", "inputs.past_value", "shape", { inputs: { ...past, past_value: zeros(2, 2, 6, 6) } }],
    ["a past of rank 3", "inputs.past_key", "shape", { inputs: { ...past, past_key: zeros(2, 7, 16) } }],
    ["a past of another element type", "inputs.past_key", "dtype", { inputs: { ...past, past_key: half(2, 2, 7, 8) } }],
    ["nonpad_kv_seqlen beside a past", "inputs.nonpad_kv_seqlen", "option", { inputs: { ...past, nonpad_kv_seqlen: [5, 5] } }],
    ["nonpad_kv_seqlen of another length", "inputs.nonpad_kv_seqlen", "shape", { inputs: { nonpad_kv_seqlen: [5] } }],
    ["nonpad_kv_seqlen beyond the keys", "inputs.nonpad_kv_seqlen[1]", "option", { inputs: { nonpad_kv_seqlen: [5, 6] } }],
    ["nonpad_kv_seqlen below 0", "inputs.nonpad_kv_seqlen[0]", "option", { inputs: { nonpad_kv_seqlen: BigInt64Array.of(-1n, 5n) } }],
    ["nonpad_kv_seqlen of floats", "inputs.nonpad_kv_seqlen", "dtype", { inputs: { nonpad_kv_seqlen: new Float32Array(2) } }],
    ["outputs that are no list", "options.outputs", "option", { options: { outputs: "Y" } }],
    ["an output that does not exist", "options.outputs[0]", "option", { options: { outputs: ["y"] } }],
    ["an unknown option", "options.output", "option", { options: { output: ["Y"] } }],
  ];
  for (const each of wrong) expectError(attention, right, each);
});

describe("attention with inputs of rank 3", () => {
  const right = { inputs: { Q: zeros(2, 3, 32), K: zeros(2, 5, 16), V: zeros(2, 5, 12) }, attributes: { q_num_heads: 4, kv_num_heads: 2 } };
  const wrong: Wrong[] = [
    ["no q_num_heads", "attributes.q_num_heads", "option", { attributes: { q_num_heads: undefined } }],
    ["no kv_num_heads", "attributes.kv_num_heads", "option", { attributes: { kv_num_heads: undefined } }],
    ["q_num_heads that does not divide", "inputs.Q", "shape", { attributes: { q_num_heads: 5 } }],
    ["kv_num_heads that does not divide q_num_heads", "inputs.K", "shape", { attributes: { q_num_heads: 4, kv_num_heads: 3 } }],
    ["kv_num_heads that makes other widths", "inputs.K", "shape", { attributes: { kv_num_heads: 4 } }],
    ["a past of rank 3", "inputs.past_key", "shape", { inputs: { past_key: zeros(2, 7, 16), past_value: zeros(2, 7, 12) } }],
  ];
  for (const each of wrong) expectError(attention, right, each);
});

describe("rotaryEmbedding", () => {
  const right = {
    inputs: {
      input: zeros(2, 4, 3, 8),
      cos_cache: zeros(50, 4),
      sin_cache: zeros(50, 4),
      position_ids: [
        [0, 1, 2],
        [3, 4, 49],
      ],
    },
  };
  const wrong: Wrong[] = [
    ["rank 2", "inputs.input", "shape", { inputs: { input: zeros(3, 8) } }],
    ["rank 3 without num_heads", "attributes.num_heads", "option", { inputs: { input: zeros(2, 3, 32) } }],
    ["num_heads that contradicts the input", "inputs.input", "shape", { attributes: { num_heads: 3 } }],
    ["caches of another width", "inputs.cos_cache", "shape", { inputs: { cos_cache: zeros(50, 8), sin_cache: zeros(50, 8) } }],
    ["caches of two shapes", "inputs.sin_cache", "shape", { inputs: { sin_cache: zeros(49, 4) } }],
    [
      "caches of rank 3 beside position_ids",
      "inputs.cos_cache",
      "shape",
      { inputs: { cos_cache: zeros(2, 3, 4), sin_cache: zeros(2, 3, 4) } },
    ],
    ["caches of rank 2 without position_ids", "inputs.cos_cache", "shape", { inputs: { position_ids: undefined } }],
    [
      "a position beyond the caches",
      "inputs.position_ids[2]",
      "option",
      {
        inputs: {
          position_ids: [
            [0, 1, 50],
            [0, 1, 2],
          ],
        },
      },
    ],
    ["positions of another shape", "inputs.position_ids", "shape", { inputs: { position_ids: [[0, 1, 2]] } }],
    [
      "positions in ragged arrays",
      "inputs.position_ids[1]",
      "shape",
      {
        inputs: {
          position_ids: [
            [0, 1, 2],
            [0, 1],
          ],
        },
      },
    ],
    ["an odd rotary_embedding_dim", "attributes.rotary_embedding_dim", "option", { attributes: { rotary_embedding_dim: 3 } }],
    ["a rotary_embedding_dim beyond the width", "attributes.rotary_embedding_dim", "option", { attributes: { rotary_embedding_dim: 10 } }],
    ["interleaved 2", "attributes.interleaved", "option", { attributes: { interleaved: 2 } }],
    ["an unknown input", "inputs.x", "option", { inputs: { x: zeros(1) } }],
    ["an unknown attribute", "attributes.base", "option", { attributes: { base: 10000 } }],
  ];
  for (const each of wrong) expectError(rotaryEmbedding, right, each);
});

describe("tensorScatter", () => {
  const right = { inputs: { past_cache: zeros(2, 1, 4, 5), update: zeros(2, 1, 2, 5), write_indices: [1, 2] } };
  const wrong: Wrong[] = [
    ["rank 1", "inputs.past_cache", "shape", { inputs: { past_cache: zeros(4) } }],
    ["an update of another width", "inputs.update", "shape", { inputs: { update: zeros(2, 1, 2, 4) } }],
    ["an update longer than the cache", "inputs.update", "shape", { inputs: { update: zeros(2, 1, 5, 5) } }],
    ["an update of another element type", "inputs.update", "dtype", { inputs: { update: half(2, 1, 2, 5) } }],
    ["an update that leaves the cache", "inputs.write_indices[1]", "option", { inputs: { write_indices: [1, 3] } }],
    [
      "a write index below 0",
      "inputs.write_indices[0]",
      "option",
      { attributes: { mode: "circular" }, inputs: { write_indices: [-1, 0] } },
    ],
    ["write indices of another length", "inputs.write_indices", "shape", { inputs: { write_indices: [1] } }],
    ["the batch's axis", "attributes.axis", "option", { attributes: { axis: 0 } }],
    ["an axis that does not exist", "attributes.axis", "option", { attributes: { axis: 4 } }],
    ["an unknown mode", "attributes.mode", "option", { attributes: { mode: "ring" } }],
  ];
  for (const each of wrong) expectError(tensorScatter, right, each);
});

describe("the instance", () => {
  const inputs = { Q: zeros(1, 1, 1, 1), K: zeros(1, 1, 1, 1), V: zeros(1, 1, 1, 1) };
  test("something else in its place", () => {
    expect(() => attention(undefined as never, inputs)).toThrow(/^attn: expected an instance/);
    expect(() => attention(inputs as never, inputs)).toThrow(/^attn: expected an instance/);
  });
  test("a disposed one", async () => {
    const gone = await loadAttention();
    gone.dispose();
    expect(() => attention(gone, inputs)).toThrow(/disposed/);
  });
});
