/** ONNX's RotaryEmbedding and TensorScatter where ONNX's own cases say nothing. */
import { type Attention, loadAttention } from "attention-wasm";
import { rotaryEmbedding, tensorScatter } from "attention-wasm/onnx";
import { beforeAll, describe, expect, test } from "vitest";
import { halfBits, halfValue } from "../../onnx/half.mjs";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const array = (shape: number[], ...values: number[]) => ({ data: Float32Array.from(values), shape });

describe("rotaryEmbedding", () => {
  // Row p of the caches holds cosine and sine of p · 1 and p · 0.01: base 10000, width 4.
  const angles = [0, 1].flatMap((p) => [p, p * 0.01]);
  const cos_cache = array([2, 2], ...angles.map(Math.cos));
  const sin_cache = array([2, 2], ...angles.map(Math.sin));
  const input = array([1, 1, 1, 4], 1, 0, 0, 0);

  test("halves by default, neighbours when interleaved", () => {
    const halves = rotaryEmbedding(attn, { input, cos_cache, sin_cache, position_ids: [[1]] }).output.data;
    expect(Array.from(halves)).toEqual([Math.fround(0.5403023), 0, Math.fround(0.841471), 0].map((x) => expect.closeTo(x, 6)));
    const neighbours = rotaryEmbedding(attn, { input, cos_cache, sin_cache, position_ids: [[1]] }, { interleaved: 1 }).output.data;
    expect(Array.from(neighbours)).toEqual([0.5403023, 0.841471, 0, 0].map((x) => expect.closeTo(x, 6)));
  });

  test("position 0 changes nothing, and the result is a new array", () => {
    const { output } = rotaryEmbedding(attn, { input, cos_cache, sin_cache, position_ids: [[0]] });
    expect(output).toEqual(input);
    expect(output.data.buffer).not.toBe(input.data.buffer);
  });

  test("cos and sin are independent", () => {
    const zero = array([2, 2], 0, 0, 0, 0);
    const { output } = rotaryEmbedding(attn, { input, cos_cache: zero, sin_cache: zero, position_ids: [[1]] });
    expect(Array.from(output.data)).toEqual([0, 0, 0, 0]);
  });

  test("int64 as a tensor, rank 3, a batch with positions of its own", () => {
    const two = array([2, 1, 4], 1, 0, 0, 0, 1, 0, 0, 0);
    const position_ids = { data: BigInt64Array.of(0n, 1n), dims: [2, 1] };
    const { output } = rotaryEmbedding(attn, { input: two, cos_cache, sin_cache, position_ids }, { num_heads: 1 });
    expect(output.shape).toEqual([2, 1, 4]);
    expect(Array.from(output.data)).toEqual([1, 0, 0, 0, 0.5403023, 0, 0.841471, 0].map((x) => expect.closeTo(x, 6)));
  });

  test("float16 in and out", () => {
    const half = ({ data, shape }: { data: Float32Array; shape: number[] }) => ({
      data: Uint16Array.from(data, halfBits),
      shape,
      dtype: "float16",
    });
    const { output } = rotaryEmbedding(attn, {
      input: half(input),
      cos_cache: half(cos_cache),
      sin_cache: half(sin_cache),
      position_ids: [[1]],
    });
    expect(output.dtype).toBe("float16");
    expect(halfValue(output.data[0]!)).toBeCloseTo(0.5403, 3);
  });
});

describe("tensorScatter", () => {
  test("begins at 0 without write_indices, and leaves its inputs alone", () => {
    const past_cache = array([1, 3, 1], 1, 2, 3);
    const { present_cache } = tensorScatter(attn, { past_cache, update: array([1, 2, 1], 8, 9) });
    expect(present_cache).toEqual(array([1, 3, 1], 8, 9, 3));
    expect(past_cache.data).toEqual(Float32Array.of(1, 2, 3));
  });

  test("wraps round in a circular cache, also from beyond its end", () => {
    const past_cache = array([2, 3, 1], 1, 2, 3, 4, 5, 6);
    const update = array([2, 2, 1], 7, 8, 9, 10);
    const { present_cache } = tensorScatter(attn, { past_cache, update, write_indices: BigInt64Array.of(2n, 4n) }, { mode: "circular" });
    expect(Array.from(present_cache.data)).toEqual([8, 2, 7, 4, 9, 10]);
  });

  test("along another axis", () => {
    const past_cache = array([1, 2, 3], 1, 2, 3, 4, 5, 6);
    const { present_cache } = tensorScatter(attn, { past_cache, update: array([1, 2, 1], 8, 9), write_indices: [2] }, { axis: -1 });
    expect(Array.from(present_cache.data)).toEqual([1, 2, 8, 4, 5, 9]);
  });

  test("float16, and updates of length 0", () => {
    const past_cache = { data: Uint16Array.of(1, 2), shape: [1, 2, 1], dtype: "float16" };
    const update = { data: Uint16Array.of(3), shape: [1, 1, 1], dtype: "float16" };
    expect(tensorScatter(attn, { past_cache, update, write_indices: [1] }).present_cache).toEqual({
      ...past_cache,
      data: Uint16Array.of(1, 3),
    });
    const empty = { data: new Uint16Array(0), shape: [1, 0, 1], dtype: "float16" };
    expect(tensorScatter(attn, { past_cache, update: empty }).present_cache).toEqual(past_cache);
  });
});
