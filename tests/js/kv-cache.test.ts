/** The key/value cache: decoding step by step equals one pass, and nothing is lost or moved that should not be. */
import { type Attention, type KvCache, type KvCacheOptions, loadAttention } from "attention-wasm";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { plainFrequencies, rotate } from "./layer-reference.js";
import { error, randomTensor, type ReferenceOptions, referenceAttention } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
const caches: KvCache[] = [];
beforeAll(async () => {
  attn = await loadAttention();
});
afterEach(() => {
  for (const cache of caches.splice(0)) cache.dispose();
});

const create = (options: KvCacheOptions): KvCache => {
  const cache = attn.createKvCache(options);
  caches.push(cache);
  return cache;
};
interface Given {
  data: Float32Array;
  shape: number[];
}
/** Positions first ... first + count - 1 of [batch, heads, length, width]. */
function part({ data, shape }: Given, first: number, count: number): Given {
  const [batch, heads, length, width] = shape as [number, number, number, number];
  const cut = new Float32Array(batch * heads * count * width);
  for (let row = 0; row < batch * heads; row++) {
    cut.set(data.subarray((row * length + first) * width, (row * length + first + count) * width), row * count * width);
  }
  return { data: cut, shape: [batch, heads, count, width] };
}

const BATCH = 2;
const KV_HEADS = 2;
const HEADS = 6;
const DIM = 10;
const VALUE_DIM = 7;
const LENGTH = 64;
const query = randomTensor([BATCH, HEADS, LENGTH, DIM], 1, 2);
const key = randomTensor([BATCH, KV_HEADS, LENGTH, DIM], 2, 2);
const value = randomTensor([BATCH, KV_HEADS, LENGTH, VALUE_DIM], 3);
const sizes = { batchSize: BATCH, numKvHeads: KV_HEADS, headDim: DIM, valueDim: VALUE_DIM };

/** Decodes in steps of these sizes, over and over, and compares every step with float64 over everything at once. */
function decode(cache: KvCache, steps: number[], options: ReferenceOptions, tolerance = 2e-6): void {
  const all = referenceAttention(query, key, value, { ...options, causal: true });
  const whole = { data: Float32Array.from(all.output), shape: all.outputShape };
  for (let t = 0, i = 0; t < LENGTH; i++) {
    const count = Math.min(steps[i % steps.length]!, LENGTH - t);
    cache.append(part(key, t, count), part(value, t, count));
    const { output } = attn.scaledDotProductAttention(part(query, t, count), cache, { ...(options as object), causal: true });
    expect(error(output.data, part(whole, t, count).data, tolerance)).toBeLessThan(1);
    t += count;
    expect(cache.positions).toEqual(new Int32Array(BATCH).fill(t));
  }
}

describe("decoding step by step equals one pass", () => {
  it.each([
    ["one by one", [1], {}],
    ["several at once", [3, 1, 7], {}],
    ["a prompt in chunks, then one by one", [17, 17, 1, 1, 1, 1], {}],
    ["with a window", [1, 2], { window: { left: 5 } }],
    ["with sinks and a soft cap", [1, 4], { sinks: [0, 1, -1, 2, 0.5, -3], softcap: 2 }],
    ["with ALiBi", [1, 2], { alibiSlopes: [0.5, 0.3, 0.2, 0.1, 0.05, 0.01] }],
  ] as const)("%s", (_, steps, options) => {
    decode(create({ ...sizes, capacity: LENGTH }), [...steps], options as unknown as ReferenceOptions);
  });

  it.each([1, 2, 5, 8, 63])("sliding: a cache of the last %i positions is a window", (window) => {
    const cache = create({ ...sizes, window, capacity: window + 6 });
    decode(cache, [1, 3, 1, 1, 7], { window: { left: window - 1 } });
    expect(cache.length).toBeLessThanOrEqual(window + 6);
    expect(cache.byteLength).toBeLessThan(4 * BATCH * KV_HEADS * (window + 8) * (DIM + VALUE_DIM) + 256);
  });

  it("sliding by one: exactly the last positions are held, in order", () => {
    const cache = create({ ...sizes, window: 5 });
    for (let t = 0; t < LENGTH; t++) {
      cache.append(part(key, t, 1), part(value, t, 1));
      const first = Math.max(0, t - 4);
      expect(cache.length).toBe(t + 1 - first);
      expect(cache.read().key.data).toEqual(part(key, first, t + 1 - first).data);
    }
  });

  it("a narrower window than that of the cache holds as well", () => {
    decode(create({ ...sizes, window: 9, capacity: 20 }), [1, 4], { window: { left: 3 } });
  });

  it("growing", () => {
    const cache = create({ ...sizes, capacity: 1, maxCapacity: Number.POSITIVE_INFINITY });
    decode(cache, [1, 5], {});
    expect(cache.capacity).toBeGreaterThanOrEqual(LENGTH);
  });

  it("float16 storage: infinities and NaN are seen while they are held, and by nobody else", () => {
    for (const odd of [Infinity, -Infinity, NaN, 1e6]) {
      const cache = create({ numKvHeads: 1, headDim: 4, capacity: 8, dtype: "float16" });
      const ones = (value: number): Given => ({ data: new Float32Array(4).fill(value), shape: [1, 1, 1, 4] });
      const attended = (): number[] => [...attn.scaledDotProductAttention(ones(1), cache, { causal: true }).output.data];
      cache.append(ones(1), ones(2));
      expect(attended()).toEqual([2, 2, 2, 2]);
      cache.append(ones(1), ones(odd));
      expect(attended()).toEqual(Array(4).fill(odd === 1e6 ? Infinity : odd));
      cache.append(ones(1), ones(2));
      expect(attended()).toEqual(Array(4).fill(odd === 1e6 ? Infinity : odd));
      cache.truncate(1);
      expect(attended()).toEqual([2, 2, 2, 2]);
      cache.reset();
      cache.append(ones(1), ones(3));
      expect(attended()).toEqual([3, 3, 3, 3]);
    }
  });

  it("float16 storage: half the memory, rounded once", () => {
    const full = create({ ...sizes, capacity: LENGTH });
    const half = create({ ...sizes, capacity: LENGTH, dtype: "float16" });
    expect(half.byteLength).toBeLessThanOrEqual(full.byteLength / 2 + 128);
    half.append(key, value);
    const stored = half.read();
    const back = (bits: ArrayLike<number>) =>
      Float32Array.from(
        bits,
        (h) => (h & 0x8000 ? -1 : 1) * ((h >> 10) & 31 ? (1 + (h & 1023) / 1024) * 2 ** (((h >> 10) & 31) - 15) : (h & 1023) * 2 ** -24),
      );
    expect(error(back(stored.key.data as Uint16Array), key.data, 2 ** -25, 2 ** -11)).toBeLessThanOrEqual(1);
    const rounded = referenceAttention(
      query,
      { data: back(stored.key.data as Uint16Array), shape: key.shape },
      { data: back(stored.value.data as Uint16Array), shape: value.shape },
      { causal: true },
    );
    expect(error(attn.scaledDotProductAttention(query, half, { causal: true }).output.data, rounded.output)).toBeLessThan(1);
    // float16 in, float16 kept: the same bits.
    const copy = create({ ...sizes, capacity: LENGTH, dtype: "float16" });
    copy.append(stored.key as never, stored.value as never);
    expect(copy.read()).toEqual(stored);
  });

  it("N04: the last two positions of a cache", () => {
    const cache = create({ numKvHeads: 1, headDim: 1, capacity: 4 });
    cache.append({ data: new Float32Array(4), shape: [4, 1] }, { data: Float32Array.of(1, 2, 3, 4), shape: [4, 1] });
    expect(
      Array.from(attn.scaledDotProductAttention({ data: new Float32Array(2), shape: [2, 1] }, cache, { causal: true }).output.data),
    ).toEqual([2, 2.5]);
  });
});

describe("rotary positions on the way in", () => {
  it.each([
    ["halves", {}],
    ["interleaved, partial", { interleaved: true, rotaryDim: 6 }],
  ] as const)("%s: go on where the cache ends", (_, options) => {
    for (const dtype of ["float32", "float16"] as const) {
      const cache = create({ ...sizes, capacity: LENGTH, dtype });
      for (let t = 0; t < LENGTH; t += 4) cache.append(part(key, t, 4), part(value, t, 4), { rotary: { base: 100, ...options } });
      const turned = rotate(key, { frequencies: plainFrequencies((options as { rotaryDim?: number }).rotaryDim ?? DIM, 100), ...options });
      const other = create({ ...sizes, capacity: LENGTH, dtype });
      other.append({ data: Float32Array.from(turned.data), shape: key.shape }, value);
      if (dtype === "float32") expect(error(cache.read().key.data, turned.data)).toBeLessThan(1);
      else expect(cache.read().key.data.length).toBe(other.read().key.data.length);
    }
  });

  it("each batch row has its own positions", () => {
    const cache = create({ ...sizes, capacity: LENGTH });
    const rotary = { base: 100 };
    cache.append(part(key, 0, 5), part(value, 0, 5), { rotary, lengths: [2, 5] });
    cache.append(part(key, 5, 3), part(value, 5, 3), { rotary });
    expect(cache.lengths).toEqual(Int32Array.of(5, 8));
    const turned = rotate(part(key, 5, 3), { frequencies: plainFrequencies(DIM, 100), position: (b, t) => t + [2, 5][b]! });
    const got = cache.read().key;
    for (let h = 0; h < KV_HEADS; h++) {
      expect(
        error(
          got.data.subarray((h * 8 + 2) * DIM, (h * 8 + 5) * DIM) as Float32Array,
          turned.data.subarray(h * 3 * DIM, (h + 1) * 3 * DIM),
        ),
      ).toBeLessThan(1);
      const row = KV_HEADS + h;
      expect(
        error(
          got.data.subarray((row * 8 + 5) * DIM, (row * 8 + 8) * DIM) as Float32Array,
          turned.data.subarray(row * 3 * DIM, (row + 1) * 3 * DIM),
        ),
      ).toBeLessThan(1);
    }
  });
});

describe("lengths", () => {
  it("rows of different lengths equal their own calls", () => {
    const cache = create({ ...sizes, capacity: LENGTH });
    cache.append(part(key, 0, 9), part(value, 0, 9), { lengths: [4, 9] });
    expect(cache.length).toBe(9);
    cache.append(part(key, 9, 1), part(value, 9, 1));
    const { output, weights } = attn.scaledDotProductAttention(part(query, 9, 1), cache, { causal: true, returnWeights: true });
    // Batch row 0: positions 0..3 and 9.
    const own = (of: Given) => {
      const [head, tail] = [part(of, 0, 4), part(of, 9, 1)];
      const width = of.shape[3]!;
      const data = new Float32Array(KV_HEADS * 5 * width);
      for (let h = 0; h < KV_HEADS; h++) {
        data.set(head.data.subarray(h * 4 * width, (h + 1) * 4 * width), h * 5 * width);
        data.set(tail.data.subarray(h * width, (h + 1) * width), (h * 5 + 4) * width);
      }
      return { data, shape: [KV_HEADS, 5, width] };
    };
    const first = { data: part(query, 9, 1).data.subarray(0, HEADS * DIM), shape: [HEADS, 1, DIM] };
    expect(error(output.data.subarray(0, HEADS * VALUE_DIM), referenceAttention(first, own(key), own(value)).output)).toBeLessThan(1);
    expect(Array.from(weights!.data.subarray(5, 10))).toEqual([0, 0, 0, 0, 0]);
  });

  it("truncate takes back, and what comes after is as if it had never been", () => {
    const cache = create({ ...sizes, capacity: LENGTH });
    cache.append(part(key, 0, 20), part(value, 0, 20));
    cache.truncate(12);
    expect(cache.length).toBe(12);
    cache.append(part(key, 12, 1), part(value, 12, 1));
    const straight = create({ ...sizes, capacity: LENGTH });
    straight.append(part(key, 0, 13), part(value, 0, 13));
    expect(cache.read()).toEqual(straight.read());
    cache.truncate([3, 7]);
    expect(cache.lengths).toEqual(Int32Array.of(3, 7));
    cache.truncate(5); // row 0 is shorter already
    expect(cache.lengths).toEqual(Int32Array.of(3, 5));
    cache.reset();
    expect(cache.positions).toEqual(Int32Array.of(0, 0));
    decode(cache, [1], {});
  });

  it("sliding: what the last append brought can be taken back, older positions only as far as they are held", () => {
    const cache = create({ ...sizes, window: 6, capacity: 12 });
    let t = 0;
    for (const [count, back] of [
      [5, 3],
      [4, 4],
      [6, 2],
      [7, 7],
      [1, 0],
      [7, 5],
    ] as const) {
      cache.append(part(key, t, count), part(value, t, count));
      cache.truncate(t + count - back);
      t += count - back;
      cache.append(part(key, t, 1), part(value, t, 1));
      t += 1;
      const got = attn.scaledDotProductAttention(part(query, t - 1, 1), cache).output.data;
      const expected = referenceAttention(part(query, t - 1, 1), part(key, 0, t), part(value, 0, t), {
        window: { left: 5 },
        queryOffset: t - 1,
      });
      expect(error(got, expected.output)).toBeLessThan(1);
    }
    const { lengths, positions } = cache;
    expect(thrown(() => cache.truncate(3))).toMatchObject({ code: "option", argument: "positions" });
    expect([cache.lengths, cache.positions]).toEqual([lengths, positions]);
  });
});

describe("batch rows", () => {
  const rows = 5;
  const fill = (window?: number) => {
    const cache = create({ batchSize: rows, numKvHeads: 2, headDim: 3, capacity: 16, ...(window === undefined ? {} : { window }) });
    const k = randomTensor([rows, 2, 7, 3], 5);
    cache.append(k, k, { lengths: [1, 7, 3, 5, 2] });
    return cache;
  };
  const rowOf = (cache: KvCache, b: number) => {
    const { data, shape } = cache.read().key;
    const length = shape[2]!;
    return [0, 1].map((h) =>
      Array.from(data.subarray((b * 2 + h) * length * 3, ((b * 2 + h) * length + cache.lengths[b]!) * 3) as Float32Array),
    );
  };
  it.each([
    [[0, 1, 2, 3, 4]],
    [[4, 3, 2, 1, 0]],
    [[1, 2, 3, 4, 0]],
    [[0, 0, 0, 0, 0]],
    [[2, 2, 1, 1, 3]],
    [[1, 0, 3, 2, 4]],
    [[4, 0, 1, 1, 3]],
    [[3, 4, 0, 1, 1]],
  ])("reorder %j", (order) => {
    const cache = fill();
    const before = order.map((_, b) => rowOf(cache, b));
    const { positions } = cache;
    cache.reorder(order);
    order.forEach((source, b) => {
      expect(rowOf(cache, b)).toEqual(before[source]);
      expect(cache.positions[b]).toBe(positions[source]);
    });
  });
  it("every order of three rows with repetition, after the window has slid", () => {
    for (let code = 0; code < 27; code++) {
      const cache = create({ batchSize: 3, numKvHeads: 1, headDim: 2, window: 3, capacity: 8 });
      const k = randomTensor([3, 1, 5, 2], code);
      cache.append(k, k, { lengths: [5, 2, 4] });
      cache.append(part(k, 0, 2), part(k, 0, 2));
      const order = [code % 3, Math.floor(code / 3) % 3, Math.floor(code / 9)];
      const held = (b: number) => {
        const { data, shape } = cache.read().key;
        return Array.from(data.subarray(b * shape[2]! * 2, (b * shape[2]! + cache.lengths[b]!) * 2) as Float32Array);
      };
      const before = [0, 1, 2].map(held);
      cache.reorder(order);
      expect([0, 1, 2].map(held)).toEqual(order.map((source) => before[source]));
      cache.dispose();
    }
  });
  it("copyRow", () => {
    const cache = fill();
    const source = rowOf(cache, 1);
    cache.copyRow(1, 4);
    expect(rowOf(cache, 4)).toEqual(source);
    expect(rowOf(cache, 1)).toEqual(source);
  });
});

describe("errors leave it as it was", () => {
  const filled = (options: Partial<KvCacheOptions> = {}) => {
    const cache = create({ ...sizes, capacity: 8, ...options });
    cache.append(part(key, 0, 6), part(value, 0, 6));
    return cache;
  };
  it.each([
    ["overflow", {}, (c: KvCache) => c.append(part(key, 0, 3), part(value, 0, 3)), "memory", "cache"],
    ["overflow of one row", {}, (c: KvCache) => c.append(part(key, 0, 4), part(value, 0, 4), { lengths: [1, 4] }), "memory", "cache"],
    ["overflow beyond growth", { maxCapacity: 10 }, (c: KvCache) => c.append(part(key, 0, 5), part(value, 0, 5)), "memory", "cache"],
    ["overflow of a window", { window: 4 }, (c: KvCache) => c.append(part(key, 0, 6), part(value, 0, 6)), "memory", "cache"],
    ["a wrong width", {}, (c: KvCache) => c.append(part(value, 0, 1), part(value, 0, 1)), "shape", "key"],
    ["another length of value", {}, (c: KvCache) => c.append(part(key, 0, 1), part(value, 0, 2)), "shape", "value"],
    [
      "lengths too long",
      {},
      (c: KvCache) => c.append(part(key, 0, 1), part(value, 0, 1), { lengths: [1, 2] }),
      "option",
      "options.lengths[1]",
    ],
    [
      "positions without rotary",
      {},
      (c: KvCache) => c.append(part(key, 0, 1), part(value, 0, 1), { positions: 1 }),
      "option",
      "options.positions",
    ],
    [
      "an unknown option",
      {},
      (c: KvCache) => c.append(part(key, 0, 1), part(value, 0, 1), { length: 1 } as never),
      "option",
      "options.length",
    ],
    ["an order that is too short", {}, (c: KvCache) => c.reorder([0]), "shape", "order"],
    ["a row that is not there", {}, (c: KvCache) => c.reorder([0, 2]), "option", "order[1]"],
    ["a copy of a row that is not there", {}, (c: KvCache) => c.copyRow(0, 2), "option", "target[0]"],
    ["a negative length", {}, (c: KvCache) => c.truncate(-1), "option", "positions"],
  ] as const)("%s", (_, options, call, code, argument) => {
    const cache = filled(options);
    const before = [cache.read(), cache.lengths, cache.positions, cache.capacity];
    const caught = thrown(() => call(cache));
    expect(caught).toMatchObject({ name: "AttentionError", code, argument });
    expect([cache.read(), cache.lengths, cache.positions, cache.capacity]).toEqual(before);
  });

  it("lengths that are handed out can't change it", () => {
    const cache = filled();
    cache.lengths[0] = 1e9;
    cache.positions[0] = 1e9;
    expect(cache.lengths).toEqual(Int32Array.of(6, 6));
  });

  it("use after dispose throws, twice is silent", () => {
    const { bytesInUse } = attn.memory;
    const cache = attn.createKvCache({ ...sizes, capacity: 100 });
    expect(attn.memory.bytesInUse).toBeGreaterThan(bytesInUse);
    cache.dispose();
    cache.dispose();
    expect(attn.memory.bytesInUse).toBe(bytesInUse);
    expect(cache.disposed).toBe(true);
    expect(thrown(() => cache.append(part(key, 0, 1), part(value, 0, 1))).code).toBe("disposed");
    expect(thrown(() => attn.scaledDotProductAttention(part(query, 0, 1), cache)).code).toBe("disposed");
  });

  it.each([
    [{ capacity: 0 }, "option", "options.capacity"],
    [{ capacity: 2 ** 30 }, "option", "options.capacity"],
    [{ capacity: 5, window: 6 }, "option", "options.capacity"],
    [{}, "option", "options.capacity"],
    [{ capacity: 5, maxCapacity: 4 }, "option", "options.maxCapacity"],
    [{ capacity: 5, dtype: "int8" }, "option", "options.dtype"],
    [{ capacity: 5, heads: 4 }, "option", "options.heads"],
  ])("created with %j", (options, code, argument) => {
    expect(thrown(() => attn.createKvCache({ ...sizes, ...options } as KvCacheOptions))).toMatchObject({ code, argument });
  });
});

describe("memory", () => {
  it("10,000 steps of a sliding cache leave it where it was", () => {
    const cache = create({ numKvHeads: 2, headDim: 8, window: 32 });
    const one = randomTensor([1, 2, 1, 8], 1);
    const step = () => {
      cache.append(one, one, { rotary: {} });
      attn.scaledDotProductAttention(one, cache);
    };
    for (let i = 0; i < 400; i++) step();
    const { bytesInUse, totalBytes } = attn.memory;
    for (let i = 0; i < 10_000; i++) step();
    expect(attn.memory).toMatchObject({ bytesInUse, totalBytes });
    expect(cache.positions[0]).toBe(10_400);
  });
});
