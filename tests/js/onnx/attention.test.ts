/** ONNX's Attention where ONNX's own cases say nothing: ranks of masks, windows, large scores, the kinds of input that JavaScript has. */
import { type Attention, loadAttention, tensor } from "attention-wasm";
import { attention } from "attention-wasm/onnx";
import { beforeAll, describe, expect, test } from "vitest";
import { halfBits, halfValue } from "../../onnx/half.mjs";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const array = (shape: number[], ...values: number[]) => ({ data: Float32Array.from(values), shape });
const zeros = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });
const LN3 = Math.log(3);
const close = (actual: ArrayLike<number>, ...expected: number[]) => {
  expect(actual.length).toBe(expected.length);
  expected.forEach((x, i) => {
    expect(actual[i]).toBeCloseTo(x, 5);
  });
};

describe("attn_mask", () => {
  // 2 heads, 2 queries, 3 keys; q = 0, so the output is the mean of the values that are seen.
  const Q = zeros(1, 2, 2, 1);
  const K = zeros(1, 2, 3, 1);
  const V = array([1, 2, 3, 1], 3, 6, 9, 3, 6, 9);
  const Y = (attn_mask: Parameters<typeof attention>[1]["attn_mask"]) => attention(attn, { Q, K, V, attn_mask }).Y.data;

  test("rank 1 is one row for all", () => {
    close(Y({ data: Uint8Array.of(1, 0, 1), shape: [3] }), 6, 6, 6, 6);
    close(Y([true, false, true]), 6, 6, 6, 6);
  });
  test("rank 2 is [queries, keys]", () => {
    const rows: [boolean[], boolean[]] = [
      [true, false, false],
      [false, true, true],
    ];
    close(Y(rows), 3, 7.5, 3, 7.5);
  });
  test("rank 3 is [heads, queries, keys], not the batch", () => {
    close(Y({ data: Uint8Array.of(1, 0, 0, 0, 1, 0), shape: [2, 1, 3] }), 3, 3, 6, 6);
  });
  test("rank 4, broadcast over heads and queries", () => {
    close(Y({ data: Uint8Array.of(0, 1, 1), shape: [1, 1, 1, 3] }), 7.5, 7.5, 7.5, 7.5);
  });
  test("a last axis of 1 repeats, a shorter one hides the keys beyond it", () => {
    close(Y({ data: Uint8Array.of(1, 0), shape: [2, 1] }), 6, 0, 6, 0);
    close(Y({ data: Uint8Array.of(1, 1), shape: [2] }), 4.5, 4.5, 4.5, 4.5);
    close(Y(array([2], 0, LN3)), 5.25, 5.25, 5.25, 5.25);
    const half = { data: Uint16Array.from([0, LN3], halfBits), shape: [2], dtype: "float16" };
    expect(Y(half)[0]).toBeCloseTo(5.25, 3);
  });
  test("floats are added, also in nested arrays", () => {
    close(Y([[0, LN3, Number.NEGATIVE_INFINITY]]), 5.25, 5.25, 5.25, 5.25);
  });
  test("with -Infinity everywhere the row is 0, with -1e9 everywhere it is not", () => {
    close(Y(array([3], -Infinity, -Infinity, -Infinity)), 0, 0, 0, 0);
    close(Y(array([3], -1e9, -1e9, -1e9)), 6, 6, 6, 6);
  });
});

describe("positions", () => {
  const V = array([1, 1, 5, 1], 0, 1, 2, 3, 4);
  test("the window of opset 25", () => {
    const { Y } = attention(attn, { Q: zeros(1, 1, 5, 1), K: zeros(1, 1, 5, 1), V }, { left_window_size: 1, right_window_size: 2 });
    close(Y.data, 1, 1.5, 2.5, 3, 3.5);
  });
  test("a window composes with causal, and is placed by the past", () => {
    const past = { past_key: zeros(1, 1, 3, 1), past_value: array([1, 1, 3, 1], 0, 1, 2) };
    const inputs = { Q: zeros(1, 1, 2, 1), K: zeros(1, 1, 2, 1), V: array([1, 1, 2, 1], 3, 4), ...past };
    close(attention(attn, inputs, { left_window_size: 1, right_window_size: 0 }).Y.data, 2.5, 3.5);
    close(attention(attn, inputs, { left_window_size: 1, is_causal: 1 }).Y.data, 2.5, 3.5);
    close(attention(attn, inputs, { left_window_size: 1 }).Y.data, 3, 3.5);
  });
  test("a window is placed by valid lengths", () => {
    const inputs = {
      Q: zeros(2, 1, 1, 1),
      K: zeros(2, 1, 5, 1),
      V: array([2, 1, 5, 1], 0, 1, 2, 3, 4, 0, 1, 2, 3, 4),
      nonpad_kv_seqlen: [3, 5],
    };
    close(attention(attn, inputs, { left_window_size: 1 }).Y.data, 1.5, 3.5);
  });
  test("without a past causal is top-left", () => {
    close(attention(attn, { Q: zeros(1, 1, 2, 1), K: zeros(1, 1, 5, 1), V }, { is_causal: 1 }).Y.data, 0, 0.5);
  });
  test.each([
    ["numbers", [2, 3]],
    ["an Int32Array", Int32Array.of(2, 3)],
    ["a BigInt64Array", BigInt64Array.of(2n, 3n)],
    ["a tensor of a BigInt64Array", { data: BigInt64Array.of(2n, 3n), dims: [2] }],
    ["a tensor of numbers", { data: [2, 3], shape: [2] }],
  ])("nonpad_kv_seqlen as %s", (_, nonpad_kv_seqlen) => {
    const V = array([2, 1, 4, 1], 1, 3, 5, NaN, 1, 3, 5, NaN);
    close(attention(attn, { Q: zeros(2, 1, 1, 1), K: zeros(2, 1, 4, 1), V, nonpad_kv_seqlen }, {}, { outputs: ["Y"] }).Y.data, 2, 3);
  });
});

describe("qk_matmul_output", () => {
  const inputs = {
    Q: array([1, 1, 1, 1], 2),
    K: array([1, 1, 3, 1], 1, 2, 3),
    V: zeros(1, 1, 3, 1),
    attn_mask: array([3], 1, 0, -Infinity),
  };
  const matrix = (qk_matmul_output_mode: number, softcap = 2) =>
    attention(attn, inputs, { qk_matmul_output_mode, softcap, scale: 1 }, { outputs: ["qk_matmul_output"] }).qk_matmul_output.data;
  const capped = (x: number) => 2 * Math.tanh(x / 2);

  test("mode 0 is raw, also with softcap", () => close(matrix(0), 2, 4, 6));
  test("mode 1 is after softcap", () => close(matrix(1), capped(2), capped(4), capped(6)));
  test("mode 2 is after masks, with a real -Infinity", () => close(matrix(2), capped(2) + 1, capped(4), Number.NEGATIVE_INFINITY));
  test("mode 3 sums to 1", () => expect(matrix(3).reduce((a, b) => a + b)).toBeCloseTo(1, 6));
  test("the default is mode 0", () => {
    close(attention(attn, inputs, { softcap: 2, scale: 1 }).qk_matmul_output.data, 2, 4, 6);
  });
  test("it has query heads and rank 4 for inputs of rank 3", () => {
    const flat = { Q: zeros(2, 3, 8), K: zeros(2, 5, 4), V: zeros(2, 5, 6) };
    const { qk_matmul_output, Y, present_key, present_value } = attention(attn, flat, { q_num_heads: 4, kv_num_heads: 2 });
    expect(qk_matmul_output.shape).toEqual([2, 4, 3, 5]);
    expect(Y.shape).toEqual([2, 3, 12]);
    expect(present_key.shape).toEqual([2, 2, 5, 2]);
    expect(present_value.shape).toEqual([2, 2, 5, 3]);
  });
});

describe("outputs", () => {
  const inputs = { Q: array([1, 1, 1, 1], 1), K: array([1, 1, 2, 1], 0, LN3), V: array([1, 1, 2, 1], 0, 4) };
  test("all four unless named", () => {
    expect(Object.keys(attention(attn, inputs)).sort()).toEqual(["Y", "present_key", "present_value", "qk_matmul_output"]);
    const { Y, ...others } = attention(attn, inputs, { scale: 1 }, { outputs: ["Y"] });
    close(Y.data, 3);
    expect(others).toEqual({});
    expect(attention(attn, inputs, {}, { outputs: [] })).toEqual({});
  });
  test("they are new arrays", () => {
    const { present_key, present_value } = attention(attn, inputs);
    expect(present_key.data).toEqual(inputs.K.data);
    expect(present_key.data.buffer).not.toBe(inputs.K.data.buffer);
    expect(present_value.data.buffer).not.toBe(inputs.V.data.buffer);
  });
  test("inputs stay as they are", () => {
    const copy = structuredClone(inputs);
    attention(attn, inputs, { is_causal: 1, softcap: 3 });
    expect(inputs).toEqual(copy);
  });
});

describe("kinds of tensor", () => {
  test("dims in place of shape, tensor(), and buffers of the instance", () => {
    const K = attn.buffer([1, 1, 2, 1]);
    K.data.set([0, LN3]);
    const V = tensor([[[[0], [4]]]]);
    close(attention(attn, { Q: { data: Float32Array.of(1), dims: [1, 1, 1, 1] }, K, V }, { scale: 1 }).Y.data, 3);
    K.dispose();
  });
  test("float16 bits in, float16 bits out", () => {
    const half = (shape: number[], ...values: number[]) => ({ data: Uint16Array.from(values, halfBits), shape, dtype: "float16" });
    const { Y, present_key, qk_matmul_output } = attention(
      attn,
      {
        Q: half([1, 1, 1, 1], 1),
        K: half([1, 1, 1, 1], 0),
        V: half([1, 1, 1, 1], 0),
        past_key: half([1, 1, 1, 1], LN3),
        past_value: half([1, 1, 1, 1], 4),
      },
      { scale: 1 },
    );
    expect(Y.dtype).toBe("float16");
    expect(halfValue(Y.data[0]!)).toBeCloseTo(3, 2);
    expect(present_key.data).toEqual(Uint16Array.of(halfBits(LN3), 0));
    expect(qk_matmul_output.data).toEqual(Uint16Array.of(halfBits(LN3), 0));
  });
  test("one key/value head for all, with different widths", () => {
    const V = array([1, 1, 1, 2], 5, 9);
    close(attention(attn, { Q: zeros(1, 3, 1, 4), K: zeros(1, 1, 1, 4), V }).Y.data, 5, 9, 5, 9, 5, 9);
  });
  test("large scores", () => {
    const { Y } = attention(attn, { Q: array([1, 1, 1, 1], 1), K: array([1, 1, 3, 1], 1e4, 1e4, -1e4), V: array([1, 1, 3, 1], 2, 4, 100) });
    close(Y.data, 3);
  });
  test("lengths of 0", () => {
    const { Y, qk_matmul_output } = attention(attn, { Q: zeros(1, 2, 3, 4), K: zeros(1, 2, 0, 4), V: zeros(1, 2, 0, 4) });
    expect(Y.data).toEqual(new Float32Array(24));
    expect(qk_matmul_output.shape).toEqual([1, 2, 3, 0]);
    expect(attention(attn, { Q: zeros(0, 2, 3, 4), K: zeros(0, 2, 1, 4), V: zeros(0, 2, 1, 4) }).Y.shape).toEqual([0, 2, 3, 4]);
  });
});
