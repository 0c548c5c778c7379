/** float16 in and out: read exactly, computed in float32, rounded once at the end. All 65536 patterns. */
import { type Attention, type Float16Data, loadAttention, tensor } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { error, randomTensor, referenceAttention } from "./reference.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

/** binary16 by the book. */
function decode(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/** The nearest binary16, ties to even: found among its neighbours, since patterns of one sign are in order of value. */
function encode(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  let low = 0;
  let high = 0x7c00;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (decode(middle) <= size) low = middle;
    else high = middle;
  }
  if (high === 0x7c00) return sign | low;
  const toLow = size - decode(low);
  const toHigh = decode(high) - size;
  return sign | (toLow < toHigh || (toLow === toHigh && low % 2 === 0) ? low : high);
}

const half = (given: { data: ArrayLike<number>; shape: number[] }) => ({
  data: Uint16Array.from(given.data, encode),
  shape: given.shape,
  dtype: "float16" as const,
});
const decoded = (given: { data: ArrayLike<number>; shape: number[] }) => ({
  data: Float64Array.from(given.data, decode),
  shape: given.shape,
});
const one = { data: Uint16Array.of(0), shape: [1, 1], dtype: "float16" as const };

describe("float16", () => {
  const patterns = Uint16Array.from({ length: 65536 }, (_, i) => i);

  it("all patterns go through a value and back", () => {
    const value = { data: patterns, shape: [1, 65536], dtype: "float16" as const };
    const { output } = attn.scaledDotProductAttention(one, one, value); // one key of weight 1: the value itself
    expect(output.dtype).toBe("float16");
    expect(output.data).toBeInstanceOf(Uint16Array);
    for (let bits = 0; bits < 65536; bits++) {
      const got = output.data[bits]!;
      if (Number.isNaN(decode(bits))) expect(decode(got)).toBeNaN();
      else if (bits === 0x8000)
        expect(got & 0x7fff).toBe(0); // the sum of 0 and -0 is 0
      else if (got !== bits) expect(got).toBe(bits);
    }
  });

  it("all patterns are read exactly, as query, key and value", () => {
    const long = { data: patterns, shape: [65536, 1], dtype: "float16" as const };
    const column = tensor(Float32Array.of(1), [1, 1]);
    const asQuery = attn.scaledDotProductAttention(long, column, column, { scale: 1, returnScores: "scaled" }).scores!.data;
    const asKey = attn.scaledDotProductAttention(column, long, long, { scale: 1, returnScores: "scaled" }).scores!.data;
    const asValue = attn.scaledDotProductAttention(column, column, { ...long, shape: [1, 65536] }).output.data;
    const equal = (got: number, expected: number) => got === expected || (Number.isNaN(got) && Number.isNaN(expected));
    for (let bits = 0; bits < 65536; bits++) {
      const exact = decode(bits);
      if (!equal(asQuery[bits]!, exact) || !equal(asKey[bits]!, exact) || !equal(asValue[bits]!, exact)) {
        expect([bits, asQuery[bits], asKey[bits], asValue[bits]]).toEqual([bits, exact, exact, exact]);
      }
    }
  });

  it("results are rounded to nearest, ties to even", () => {
    const values: number[] = [];
    for (let bits = 0; bits < 0x7c00; bits += 7) {
      const a = decode(bits);
      const b = decode(bits + 1);
      const middle = Number.isFinite(b) ? (a + b) / 2 : 65520;
      for (const x of [middle, a + (middle - a) * 0.999, middle + (middle - a) * 0.001]) values.push(Math.fround(x), -Math.fround(x));
    }
    values.push(
      65519.996,
      65520,
      1e30,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
      1e-30,
      2 ** -25,
      2 ** -25 * 1.0001,
      2 ** -24,
    );
    const data = Float32Array.from(values);
    const { output } = attn.scaledDotProductAttention(one, tensor([[0]]), { data, shape: [1, data.length] });
    for (let i = 0; i < data.length; i++) {
      const expected = encode(data[i]!);
      const got = output.data[i]!;
      if (Number.isNaN(decode(expected))) expect(decode(got)).toBeNaN();
      else if (got !== expected && (got | expected) !== 0x8000) expect([data[i], got]).toEqual([data[i], expected]);
    }
  });

  it("any mixture of element types gives the float64 result of the same numbers", () => {
    const query = half(randomTensor([2, 4, 6, 9], 1));
    const key = half(randomTensor([2, 2, 33, 9], 2));
    const value = half(randomTensor([2, 2, 33, 5], 3));
    const bias = half(randomTensor([6, 33], 4));
    const reference = referenceAttention(decoded(query), decoded(key), decoded(value), {
      bias: decoded(bias),
      causal: "bottom-right",
    }).output;
    const as32 = (given: typeof query) => ({ data: Float32Array.from(given.data, decode), shape: given.shape });
    for (let mixture = 0; mixture < 16; mixture++) {
      const choose = (given: typeof query, bit: number) => (mixture & bit ? given : as32(given));
      const options = { bias: choose(bias, 8), causal: "bottom-right" as const };
      const { output } = attn.scaledDotProductAttention(choose(query, 1), choose(key, 2), choose(value, 4), options);
      if (mixture & 1) {
        for (let i = 0; i < reference.length; i++) {
          expect(Math.abs(decode(output.data[i]!) - reference[i]!)).toBeLessThanOrEqual(2 ** -11 * Math.abs(reference[i]!) + 2e-6);
        }
      } else {
        expect(output.data).toBeInstanceOf(Float32Array);
        expect(error(output.data, reference)).toBeLessThanOrEqual(1);
      }
    }
  });

  it("works from buffers, into buffers and into arrays", () => {
    const query = half(randomTensor([3, 4], 1));
    const key = half(randomTensor([5, 4], 2));
    const value = half(randomTensor([5, 2], 3));
    const plain = attn.scaledDotProductAttention(query, key, value).output.data;
    const inside = (given: typeof query) => {
      const buffer = attn.buffer(given.shape, { dtype: "float16" });
      buffer.data.set(given.data);
      return buffer;
    };
    const out = attn.buffer([3, 2], { dtype: "float16" });
    const buffers = [inside(query), inside(key), inside(value)] as const;
    expect(attn.scaledDotProductAttention(...buffers).output.data).toEqual(plain);
    const result = attn.scaledDotProductAttention(...buffers, { out });
    expect(result.output).toBe(out);
    expect(Array.from(out.data)).toEqual(Array.from(plain));
    const array = { data: new Uint16Array(6), shape: [3, 2], dtype: "float16" as const };
    attn.scaledDotProductAttention(...buffers, { out: array });
    expect(array.data).toEqual(plain);
    for (const buffer of [...buffers, out]) buffer.dispose();
  });

  it("Float16Array in, Float16Array out, where the class exists", () => {
    if (!("Float16Array" in globalThis)) return; // Node 24 and current browsers have it
    const { Float16Array } = globalThis as unknown as { Float16Array: { from(values: ArrayLike<number>): Float16Data } };
    const native = (given: { data: Float32Array; shape: number[] }) => ({ data: Float16Array.from(given.data), shape: given.shape });
    const [q, k, v] = [randomTensor([3, 4], 1), randomTensor([5, 4], 2), randomTensor([5, 2], 3)];
    const { output } = attn.scaledDotProductAttention(native(q), native(k), native(v));
    expect(Object.prototype.toString.call(output.data)).toBe("[object Float16Array]");
    const bits = attn.scaledDotProductAttention(half(q), half(k), half(v)).output.data;
    expect(Array.from(output.data)).toEqual(Array.from(bits, decode));
  });
});
