/** attn.buffer: tensors that live in WebAssembly memory. */
import { type Attention, loadAttention, tensor } from "attention-wasm";
import { beforeEach, describe, expect, it } from "vitest";
import { randomTensor } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeEach(async () => {
  attn = await loadAttention();
});

const inside = (given: { data: Float32Array; shape: number[] }) => {
  const buffer = attn.buffer(given.shape);
  buffer.data.set(given.data);
  return buffer;
};

describe("buffer", () => {
  it("has its shape, element type and size, and starts as 0", () => {
    const buffer = attn.buffer([2, 3]);
    expect(buffer.shape).toEqual([2, 3]);
    expect(buffer.dtype).toBe("float32");
    expect(buffer.byteLength).toBe(24);
    expect(Array.from(buffer.data)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(attn.buffer([5], { dtype: "uint8" }).data).toBeInstanceOf(Uint8Array);
    expect(attn.buffer([5], { dtype: "float16" }).data).toBeInstanceOf(Uint16Array);
    expect(attn.buffer([0, 4]).data.length).toBe(0);
    buffer.shape[0] = 100;
    expect(buffer.shape).toEqual([2, 3]);
    buffer.data.fill(5);
    buffer.dispose();
    expect(Array.from(attn.buffer([2, 3]).data)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("gives the same result as arrays, without copies", () => {
    const [q, k, v] = [randomTensor([2, 3, 8], 1), randomTensor([1, 5, 8], 2), randomTensor([1, 5, 4], 3)];
    const mask = tensor([[true, false, true, true, true]]);
    const bias = randomTensor([3, 5], 4);
    const plain = attn.scaledDotProductAttention(q, k, v, { mask, bias });
    const maskBuffer = attn.buffer([1, 5], { dtype: "uint8" });
    maskBuffer.data.set(mask.data);
    const out = inside({ data: new Float32Array(24).fill(7), shape: [2, 3, 4] });
    const options = { mask: maskBuffer, bias: inside(bias) };
    const [bq, bk, bv] = [inside(q), inside(k), inside(v)];
    expect(attn.scaledDotProductAttention(bq, bk, bv, options).output.data).toEqual(plain.output.data);
    const result = attn.scaledDotProductAttention(bq, bk, bv, { ...options, out });
    expect(result.output).toBe(out);
    expect(Array.from(out.data)).toEqual(Array.from(plain.output.data));
    expect(Array.from(bq.data)).toEqual(Array.from(q.data));
    // buffers, views of them and arrays mix
    const view = { data: bk.data, shape: bk.shape };
    expect(attn.scaledDotProductAttention(q, view, bv, options).output.data).toEqual(plain.output.data);
    // a sub-array of a buffer at an odd element
    const large = attn.buffer([100]);
    large.data.fill(7e7);
    large.data.set(q.data, 1);
    const part = { data: large.data.subarray(1, 49), shape: q.shape };
    expect(attn.scaledDotProductAttention(part, bk, bv, options).output.data).toEqual(plain.output.data);
    expect(large.data[0]).toBe(7e7);
    const target = { data: large.data.subarray(51, 75), shape: [2, 3, 4] };
    attn.scaledDotProductAttention(part, bk, bv, { ...options, out: target });
    expect(Array.from(large.data.subarray(51, 75))).toEqual(Array.from(plain.output.data));
    expect([large.data[50], large.data[75]]).toEqual([Math.fround(7e7), Math.fround(7e7)]);
  });

  it("data stays live when the memory grows; kept views do not", () => {
    const buffer = inside(randomTensor([1000], 1));
    const kept = buffer.data;
    const before = Array.from(kept);
    const more = attn.buffer([2 ** 22]);
    expect(kept.length).toBe(0);
    expect(Array.from(buffer.data)).toEqual(before);
    expect(buffer.data).toBe(buffer.data);
    const error = thrown(() => attn.scaledDotProductAttention({ data: kept, shape: [10, 100] }, tensor([[1]]), tensor([[1]])));
    expect(error.message).toMatch(/detached/);
    more.dispose();
  });

  it("an output that overlaps an input is refused", () => {
    const x = inside(randomTensor([4, 4], 1));
    const other = inside(randomTensor([4, 4], 2));
    for (const given of [
      [x, other, other],
      [other, x, other],
      [other, other, x],
      [x, x, x],
    ] as const) {
      expect(thrown(() => attn.scaledDotProductAttention(...given, { out: x })).message).toMatch(
        /options\.out: expected memory that does not overlap/,
      );
    }
    const half = attn.buffer([32]);
    const [first, second] = [
      { data: half.data.subarray(0, 16), shape: [4, 4] },
      { data: half.data.subarray(15, 31), shape: [4, 4] },
    ];
    expect(thrown(() => attn.scaledDotProductAttention(first, other, other, { out: second })).code).toBe("option");
    attn.scaledDotProductAttention(first, other, other, { out: { data: half.data.subarray(16, 32), shape: [4, 4] } });
    const bias = inside(randomTensor([4, 4], 3));
    expect(thrown(() => attn.scaledDotProductAttention(x, x, x, { bias, out: bias })).code).toBe("option");
    // In arrays of JavaScript the inputs are copied first: the output may be one of them.
    const array = randomTensor([4, 4], 1);
    const expected = attn.scaledDotProductAttention(array, array, array).output.data;
    attn.scaledDotProductAttention(array, array, array, { out: array });
    expect(array.data).toEqual(expected);
  });

  it("M04: dispose, twice, and use after it", () => {
    const before = attn.memory.bytesInUse;
    const buffer = attn.buffer([1000]);
    const stale = { data: buffer.data, shape: [10, 100] };
    expect(attn.memory.bytesInUse).toBeGreaterThanOrEqual(before + 4000);
    buffer.dispose();
    buffer.dispose();
    expect(buffer.disposed).toBe(true);
    expect(attn.memory.bytesInUse).toBe(before);
    expect(attn.memory.peakBytes).toBeGreaterThanOrEqual(before + 4000);
    expect(thrown(() => buffer.data).code).toBe("disposed");
    expect(thrown(() => attn.scaledDotProductAttention(buffer, buffer, buffer)).code).toBe("disposed");
    const other = attn.buffer([1, 100]);
    expect(thrown(() => attn.scaledDotProductAttention(stale, other, other)).code).toBe("disposed");
    {
      using scoped = attn.buffer([10]);
      expect(scoped.disposed).toBe(false);
    }
    const dispose = (attn.buffer([3]) as unknown as Record<symbol, unknown>)[Symbol.dispose];
    expect(typeof dispose).toBe("function");
  });

  it("buffers of another instance are copied, and end with their own", async () => {
    const other = await loadAttention();
    const x = other.buffer([4, 4]);
    x.data.set(randomTensor([4, 4], 1).data);
    const array = { data: x.data.slice(), shape: [4, 4] };
    expect(attn.scaledDotProductAttention(x, x, x).output.data).toEqual(attn.scaledDotProductAttention(array, array, array).output.data);
    const out = other.buffer([4, 4]);
    attn.scaledDotProductAttention(array, array, array, { out });
    expect(Array.from(out.data)).toEqual(Array.from(attn.scaledDotProductAttention(array, array, array).output.data));
    other.dispose();
    expect(x.disposed).toBe(true);
    expect(thrown(() => attn.scaledDotProductAttention(x, x, x)).code).toBe("disposed");
    expect(attn.scaledDotProductAttention(array, array, array).output.data.length).toBe(16);
  });
});
