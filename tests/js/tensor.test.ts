/** tensor(): from typed arrays and from nested arrays. */
import { AttentionError, tensor } from "attention-wasm";
import { describe, expect, it } from "vitest";
import { thrown } from "./thrown.js";

const make = tensor as (...given: unknown[]) => { data: Float32Array; shape: number[]; dtype?: string };

describe("tensor", () => {
  it("takes typed arrays as they are", () => {
    const data = Float32Array.of(1, 2, 3, 4, 5, 6);
    expect(tensor(data, [2, 3])).toEqual({ data, shape: [2, 3] });
    expect(tensor(data, [2, 3]).data).toBe(data);
    expect(tensor(data).shape).toEqual([6]);
    expect(tensor(new Float32Array(0), [0, 5]).shape).toEqual([0, 5]);
    const shape = [6];
    const result = tensor(data, shape);
    shape[0] = 7;
    expect(result.shape).toEqual([6]);
    const sub = data.subarray(1, 4);
    expect(tensor(sub, [3]).data).toBe(sub);
  });

  it("makes float32 of numbers and a mask of booleans", () => {
    expect(tensor([1, 2])).toEqual({ data: Float32Array.of(1, 2), shape: [2] });
    expect(
      tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]),
    ).toEqual({ data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] });
    expect(tensor([[[1]], [[2]]])).toEqual({ data: Float32Array.of(1, 2), shape: [2, 1, 1] });
    expect(tensor([[true, false]])).toEqual({ data: Uint8Array.of(1, 0), shape: [1, 2] });
    expect(tensor([1, 2, 3, 4], [2, 2])).toEqual({ data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] });
    expect(tensor([])).toEqual({ data: new Float32Array(0), shape: [0] });
    expect(tensor([[], []]).shape).toEqual([2, 0]);
    expect(tensor([Number.NaN, Number.POSITIVE_INFINITY]).data).toEqual(Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY));
  });

  it("rounds float64, keeps masks, and needs a word for float16 bits", () => {
    expect(tensor(Float64Array.of(0.1)).data).toEqual(Float32Array.of(0.1));
    const mask = Uint8Array.of(1, 0);
    expect(tensor(mask, [1, 2]).data).toBe(mask);
    const bits = Uint16Array.of(0x3c00);
    expect(tensor(bits, [1], { dtype: "float16" })).toEqual({ data: bits, shape: [1], dtype: "float16" });
    expect(thrown(() => make(bits, [1])).message).toMatch(/float16/);
    expect(thrown(() => make(Float32Array.of(1), [1], { dtype: "float16" })).code).toBe("dtype");
    expect(thrown(() => make(bits, [1], { dtype: "float32" })).code).toBe("dtype");
    expect(thrown(() => make(bits, [1], { dtype: "half" })).code).toBe("option");
  });

  it("refuses what is ragged, mixed or of another size", () => {
    const cases: [unknown[], string, RegExp][] = [
      [[[[1, 2], [3]]], "shape", /data\[1\]: expected an array of 2 elements/],
      [[[[1, 2], 3]], "shape", /data\[1\]/],
      [[[1, [2]]], "dtype", /data\[1\]: expected a number/],
      [[[[1], [true]]], "dtype", /data\[1\]\[0\]: expected a number, got true/],
      [[[[true], [1]]], "dtype", /data\[1\]\[0\]: expected a boolean, got 1/],
      [[["1"]], "dtype", /data\[0\]/],
      [[[null]], "dtype", /null/],
      [[new Float32Array(6), [2, 2]], "shape", /4 elements \(shape \[2, 2\]\), got 6/],
      [[new Float32Array(6), [-2, -3]], "shape", /shape/],
      [[new Float32Array(6), [1.5, 4]], "shape", /shape/],
      [[new Int32Array(6), [6]], "dtype", /Int32Array/],
      [[new BigInt64Array(6)], "dtype", /BigInt64Array/],
      [[undefined], "dtype", /undefined/],
      [[null], "dtype", /null/],
      [["abc"], "dtype", /"abc"/],
      [[{}], "dtype", /object/],
      [[1n], "dtype", /BigInt/],
    ];
    for (const [given, code, message] of cases) {
      const error = thrown(() => make(...given));
      expect(error).toBeInstanceOf(AttentionError);
      expect(error.code, error.message).toBe(code);
      expect(error.message).toMatch(message);
    }
  });
});
