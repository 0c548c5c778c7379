/** The layer: weights under every family's names, packed once, called many times, alone and with a cache. */
import { type Attention, fromSafetensors, loadAttention, type MultiHeadAttentionOptions } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { plainFrequencies, type ReferenceWeights, referenceLayer } from "./layer-reference.js";
import { drawWeights, families, type Numbers } from "./layer-weights.js";
import { error, randomTensor } from "./reference.js";
import { type FileType, rounded, safetensorsBytes } from "./safetensors-file.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

/** Positions first ... first + count - 1 of [batch, length, width]. */
function part({ data, shape }: Numbers, first: number, count: number): Numbers {
  const [batch, length, width] = shape as [number, number, number];
  const cut = new Float32Array(batch * count * width);
  for (let b = 0; b < batch; b++)
    cut.set(data.subarray((b * length + first) * width, (b * length + first + count) * width), b * count * width);
  return { data: cut, shape: [batch, count, width] };
}

describe("names of files", () => {
  const x = randomTensor([2, 9, 24], 100);
  for (const [title, { isFused, name }] of Object.entries(families)) {
    it.each(["F32", "F16", "BF16"] as const)(`${title} from safetensors as %s: the float64 result`, (type: FileType) => {
      const kvHeads = isFused ? 4 : 2;
      const weights = drawWeights(24, 4, kvHeads, 6);
      const prefix = "model.layers.3.attn.";
      const named = Object.fromEntries(Object.entries(name(weights, 4, kvHeads)).map(([key, value]) => [prefix + key, value]));
      const file = safetensorsBytes({ "model.layers.2.attn.c_attn.weight": randomTensor([3], 1), ...named }, () => type);
      using layer = attn.createMultiHeadAttention({ numHeads: 4, weights: fromSafetensors(file), prefix });
      const exact = Object.fromEntries(
        Object.entries(weights).map(([key, { data, shape }]) => [
          key,
          { data: Float64Array.from(data, (number) => rounded(number, type)), shape },
        ]),
      ) as unknown as ReferenceWeights;
      const expected = referenceLayer(x, exact, { numHeads: 4, numKvHeads: kvHeads, causal: true });
      expect(error(layer.forward(x, { causal: true }).output.data, expected.output.data)).toBeLessThan(1);
      expect([layer.embedDim, layer.numKvHeads, layer.headDim, layer.outputDim]).toEqual([24, kvHeads, 6, 24]);
      // Without biases as well.
      const bare = Object.fromEntries(Object.entries(name(weights, 4, kvHeads)).filter(([key]) => !key.includes("bias")));
      using plain = attn.createMultiHeadAttention({ numHeads: 4, weights: bare });
      const without = { ...weights, bq: undefined, bk: undefined, bv: undefined, bo: undefined };
      expect(
        error(plain.forward(x).output.data, referenceLayer(x, without, { numHeads: 4, numKvHeads: kvHeads }).output.data),
      ).toBeLessThan(1);
    });
  }

  it("PyTorch's bias_k and bias_v: one more key, the last, which nobody is hidden from", () => {
    const weights = { ...drawWeights(24, 4, 4, 6), extraKey: randomTensor([1, 1, 24], 30), extraValue: randomTensor([1, 1, 24], 31) };
    const named = { ...families["PyTorch, fused"]!.name(weights, 4, 4), bias_k: weights.extraKey, bias_v: weights.extraValue };
    using layer = attn.createMultiHeadAttention({ numHeads: 4, weights: named });
    const mask = {
      data: Uint8Array.from({ length: 9 * 10 }, (_, i) => Number(i % 10 === 9 || i % 10 <= Math.floor(i / 10))),
      shape: [9, 10],
    };
    const { output, weights: matrix } = layer.forward(x, { causal: true, returnWeights: "mean" });
    const expected = referenceLayer(x, weights, { numHeads: 4, mask });
    expect(matrix!.shape).toEqual([2, 9, 10]);
    expect(error(output.data, expected.output.data)).toBeLessThan(1);
    expect(thrown(() => layer.forward(x, { alibiSlopes: true }))).toMatchObject({ code: "option", argument: "options.alibiSlopes" });
  });

  it("Qwen3's norms of queries and keys, with rotary positions", () => {
    const weights = { ...drawWeights(24, 4, 2, 6), queryNorm: randomTensor([6], 40), keyNorm: randomTensor([6], 41) };
    const named = { ...families["Llama"]!.name(weights, 4, 2), "q_norm.weight": weights.queryNorm, "k_norm.weight": weights.keyNorm };
    using layer = attn.createMultiHeadAttention({
      numHeads: 4,
      numKvHeads: 2,
      headDim: 6,
      weights: named,
      rotary: { base: 1000 },
      normEpsilon: 1e-3,
    });
    const expected = referenceLayer(x, weights, {
      numHeads: 4,
      numKvHeads: 2,
      causal: true,
      normEpsilon: 1e-3,
      rotary: { frequencies: plainFrequencies(6, 1000) },
    });
    expect(error(layer.forward(x, { causal: true }).output.data, expected.output.data)).toBeLessThan(1);
  });

  it("a Map, and Hugging Face's Vision Transformer", () => {
    const weights = drawWeights(24, 4, 4, 6);
    const named = Object.entries(families["BERT"]!.name(weights, 4, 4)).map(
      ([key, value]) => [key.replace("self.", "attention."), value] as const,
    );
    using layer = attn.createMultiHeadAttention({ numHeads: 4, weights: new Map(named) });
    expect(error(layer.forward(x).output.data, referenceLayer(x, weights, { numHeads: 4 }).output.data)).toBeLessThan(1);
  });

  it("names that fit no family are listed beside those wanted", () => {
    const { message } = thrown(() => attn.createMultiHeadAttention({ numHeads: 4, weights: { "attn.w.kernel": x, other: x } }));
    for (const word of [
      "attn.w.kernel",
      "other",
      "in_proj_weight",
      "c_attn.weight",
      "q_proj.weight",
      "self.query.weight",
      "qkv.weight",
      "query/kernel",
      "wq",
    ]) {
      expect(message).toContain(word);
    }
  });

  it("names that would be left out are an error, not a wrong number", () => {
    const weights = families["Llama"]!.name(drawWeights(24, 4, 2, 6), 4, 2);
    const caught = thrown(() =>
      attn.createMultiHeadAttention({ numHeads: 4, weights: { ...weights, "q_norm.bias": randomTensor([6], 1) } }),
    );
    expect(caught).toMatchObject({ code: "option", argument: "weights" });
    expect(caught.message).toContain("q_norm.bias");
    const noOutput = Object.fromEntries(Object.entries(weights).filter(([key]) => key !== "o_proj.weight"));
    expect(thrown(() => attn.createMultiHeadAttention({ numHeads: 4, weights: noOutput })).message).toContain("o_proj.weight");
    expect(thrown(() => attn.createMultiHeadAttention({ numHeads: 4, weights, prefix: "h.1." })).message).toContain(
      'none that begins with "h.1."',
    );
  });
});

describe("forward", () => {
  const weights = drawWeights(32, 4, 2, 8);
  const x = randomTensor([2, 21, 32], 200);
  const create = (options: Partial<MultiHeadAttentionOptions> = {}) =>
    attn.createMultiHeadAttention({ embedDim: 32, numHeads: 4, weights, ...options });

  it("equals selfAttention, bit for bit", () => {
    using layer = create();
    for (const options of [
      {},
      { causal: true },
      { window: { left: 4 }, softcap: 2 },
      { keyLengths: [5, 21] },
      { returnWeights: { heads: [2] } },
    ] as const) {
      expect(layer.forward(x, options)).toEqual(attn.selfAttention(x, weights, { numHeads: 4, ...options }));
    }
  });

  it("x of two axes, also as a buffer, into a buffer", () => {
    using layer = create();
    const buffer = attn.buffer([21, 32]);
    const out = attn.buffer([21, 32]);
    buffer.data.set(x.data.subarray(0, 21 * 32));
    const expected = layer.forward(x).output.data.subarray(0, 21 * 32);
    expect(layer.forward(buffer, { out }).output).toBe(out);
    expect(out.data).toEqual(expected);
    expect(layer.forward(buffer).output).toEqual({ data: expected, shape: [21, 32] });
    buffer.dispose();
    out.dispose();
  });

  it("options of the layer hold unless a call says otherwise", () => {
    using layer = create({ defaults: { causal: true, softcap: 3 } });
    using plain = create();
    expect(layer.forward(x)).toEqual(plain.forward(x, { causal: true, softcap: 3 }));
    expect(layer.forward(x, { causal: false, softcap: undefined })).toEqual(plain.forward(x, { softcap: 3 }));
  });

  it("rotary positions of the layer, of the call, and none", () => {
    using layer = create({ rotary: { base: 100 } });
    using plain = create();
    const expected = referenceLayer(x, weights, {
      numHeads: 4,
      numKvHeads: 2,
      rotary: { frequencies: plainFrequencies(8, 100), position: (b, t) => 3 * t + b },
    });
    const positions = [0, 1].map((b) => Array.from({ length: 21 }, (_, t) => 3 * t + b));
    expect(error(layer.forward(x, { positions }).output.data, expected.output.data)).toBeLessThan(1);
    expect(plain.forward(x, { positions, rotary: { base: 100 } })).toEqual(layer.forward(x, { positions }));
    expect(layer.forward(x, { rotary: false })).toEqual(plain.forward(x));
  });

  it.each([
    ["one by one", [1], {}, {}],
    ["several at once", [3, 1, 4], {}, {}],
    ["rotary, scaled", [5, 1, 1], { rotary: { base: 100, scaling: { type: "yarn", factor: 4, originalMaxPositions: 16 } } }, {}],
    ["rotary, sliding window", [1, 2, 1], { rotary: { base: 100, interleaved: true } }, { window: 5, capacity: 8 }],
    ["float16 cache", [2, 1], { rotary: { base: 100 } }, { dtype: "float16" }],
  ] as const)("with a cache, %s: equals one pass", (_, steps, options, cacheOptions) => {
    using layer = create(options as Partial<MultiHeadAttentionOptions>);
    const given = cacheOptions as { window?: number; dtype?: "float16" };
    using cache = attn.createKvCache({ batchSize: 2, numKvHeads: 2, headDim: 8, capacity: 21, ...given });
    const whole = layer.forward(x, { causal: true, ...(given.window === undefined ? {} : { window: { left: given.window - 1 } }) })
      .output as Numbers;
    for (let t = 0, i = 0; t < 21; i++) {
      const count = Math.min(steps[i % steps.length]!, 21 - t);
      const { output, weights: matrix } = layer.forward(part(x, t, count), { causal: true, cache, returnWeights: "mean" });
      expect(error(output.data, part(whole, t, count).data, given.dtype === undefined ? 2e-6 : 3e-3)).toBeLessThan(1);
      expect(matrix!.shape).toEqual([2, count, cache.length]);
      t += count;
    }
    expect(cache.positions).toEqual(Int32Array.of(21, 21));
  });

  it.each([1, 33])(
    "with a float16 cache, what is too large for it is seen, by %i queries and by later ones, until it is taken back",
    (count) => {
      using layer = create();
      using cache = attn.createKvCache({ batchSize: 2, numKvHeads: 2, headDim: 8, capacity: 3 * 33, dtype: "float16" });
      const quiet = randomTensor([2, count, 32], 301);
      const loud = { ...quiet, data: Float32Array.from(quiet.data) };
      for (let i = loud.data.length - 32; i < loud.data.length; i++) loud.data[i]! *= 1e7; // the last position of the second batch row
      const lastRowIsFinite = (from: typeof quiet): boolean =>
        Array.from((layer.forward(from, { causal: true, cache }).output as Numbers).data.subarray(-32)).every(Number.isFinite);
      expect(lastRowIsFinite(quiet)).toBe(true);
      expect(lastRowIsFinite(loud)).toBe(false);
      expect(lastRowIsFinite(quiet)).toBe(false);
      cache.truncate(count);
      expect(lastRowIsFinite(quiet)).toBe(true);
    },
  );

  it("a prompt of different lengths, then steps: each batch row equals its own call", () => {
    using layer = create({ rotary: { base: 100 } });
    using cache = attn.createKvCache({ batchSize: 2, numKvHeads: 2, headDim: 8, capacity: 21 });
    const prompt = layer.forward(part(x, 0, 9), { causal: true, cache, keyLengths: [4, 9] }).output as Numbers;
    const step = layer.forward(part(x, 9, 2), { causal: true, cache }).output as Numbers;
    expect(cache.lengths).toEqual(Int32Array.of(6, 11));
    const row = (of: Numbers, b: number, count: number) => of.data.subarray(b * of.shape[1]! * 32, (b * of.shape[1]! + count) * 32);
    const second = layer.forward({ data: row(x, 1, 11), shape: [11, 32] }, { causal: true }).output.data as Float32Array;
    expect(error([...row(prompt, 1, 9), ...row(step, 1, 2)], second)).toBeLessThan(1);
    const joined = new Float32Array(6 * 32);
    joined.set(row(x, 0, 4));
    joined.set(x.data.subarray(9 * 32, 11 * 32), 4 * 32);
    const first = layer.forward({ data: joined, shape: [6, 32] }, { causal: true }).output.data as Float32Array;
    expect(error([...row(prompt, 0, 4), ...row(step, 0, 2)], first)).toBeLessThan(1);
  });

  it("cross attention: the cache is filled once and then only read", () => {
    using layer = create();
    using cache = attn.createKvCache({ batchSize: 2, numKvHeads: 2, headDim: 8, capacity: 13 });
    const memory = randomTensor([2, 13, 32], 300);
    const first = layer.forward(part(x, 0, 1), { key: memory, cache });
    expect(first.output.data).toEqual(layer.forward(part(x, 0, 1), { key: memory }).output.data);
    for (let t = 1; t < 4; t++) {
      const { output } = layer.forward(part(x, t, 1), { cache, append: false });
      expect(error(output.data, layer.forward(part(x, t, 1), { key: memory }).output.data as Float32Array)).toBeLessThan(1);
    }
    expect(cache.length).toBe(13);
  });

  it("errors leave layer and cache as they were", () => {
    using layer = create();
    using cache = attn.createKvCache({ batchSize: 2, numKvHeads: 2, headDim: 8, capacity: 10 });
    layer.forward(part(x, 0, 8), { cache, causal: true });
    const before = [cache.read(), cache.lengths];
    using other = attn.createKvCache({ batchSize: 1, numKvHeads: 2, headDim: 8, capacity: 10 });
    const three = part(x, 8, 3);
    for (const [options, code, argument] of [
      [{ cache }, "memory", "cache"],
      [{ cache: other }, "shape", "options.cache"],
      [{ cache: {} }, "option", "options.cache"],
      [{ cache, causal: "top-left" }, "option", "options.causal"],
      [{ cache, keyLengths: [1, 4] }, "option", "options.keyLengths[1]"],
      [{ append: false }, "option", "options.append"],
      [{ cache, keyLengths: [1, 2], mask: new Uint8Array(3) }, "shape", "options.mask"],
      [{ trace: true }, "option", "options.trace"],
    ] as const) {
      expect(thrown(() => layer.forward(three, options as never))).toMatchObject({ code, argument });
      expect([cache.read(), cache.lengths]).toEqual(before);
    }
    cache.dispose();
    expect(thrown(() => layer.forward(three, { cache })).code).toBe("disposed");
  });
});

describe("memory", () => {
  it("layer.memory tells what is held, dispose gives it back, use after it throws", () => {
    const { bytesInUse } = attn.memory;
    const layer = attn.createMultiHeadAttention({ numHeads: 4, weights: drawWeights(64, 4, 4, 16) });
    expect(layer.memory).toBeGreaterThanOrEqual(4 * (4 * 64 * 64 + 4 * 64));
    expect(layer.memory).toBeLessThan(4 * (4 * 64 * 64 + 4 * 64) + 1024);
    expect(attn.memory.bytesInUse).toBeGreaterThanOrEqual(bytesInUse + layer.memory);
    layer.dispose();
    layer.dispose();
    expect([layer.memory, layer.disposed]).toEqual([0, true]);
    expect(thrown(() => layer.forward(randomTensor([1, 64], 1))).code).toBe("disposed");
    const again = attn.memory.bytesInUse;
    for (let i = 0; i < 100; i++) attn.createMultiHeadAttention({ numHeads: 4, weights: drawWeights(64, 4, 4, 16) }).dispose();
    for (let i = 0; i < 10; i++) thrown(() => attn.createMultiHeadAttention({ numHeads: 5, weights: drawWeights(64, 4, 4, 16) }));
    expect(attn.memory.bytesInUse).toBe(again);
  });

  it.each(["Llama", "GPT-2", "Keras", "PyTorch, fused"])(
    "large weights under %s's names go through in pieces: the memory grows by the packed form only",
    (title) => {
      // 3 MiB each; widths that are no multiple of a panel, so that pieces end inside of heads.
      const [embed, heads, dim] = [860, 4, 213];
      const weights = drawWeights(embed, heads, heads, dim);
      const named = families[title]!.name(weights, heads, heads);
      const before = attn.memory;
      using layer = attn.createMultiHeadAttention({ numHeads: heads, weights: named });
      expect(attn.memory.bytesInUse - before.bytesInUse - layer.memory).toBeLessThan(1.3 * 2 ** 20);
      const x = randomTensor([3, embed], 1);
      expect(layer.forward(x).output.data).toEqual(attn.selfAttention(x, weights, { numHeads: heads }).output.data);
      expect(error(layer.forward(x).output.data, referenceLayer(x, weights, { numHeads: heads }).output.data, 4e-6)).toBeLessThan(1);
    },
  );

  it("10,000 calls with a cache leave it where it was", () => {
    using layer = attn.createMultiHeadAttention({ numHeads: 2, weights: drawWeights(16, 2, 1, 8), rotary: {} });
    using cache = attn.createKvCache({ numKvHeads: 1, headDim: 8, window: 16 });
    const x = randomTensor([1, 16], 1);
    for (let i = 0; i < 400; i++) layer.forward(x, { cache });
    const { bytesInUse, totalBytes } = attn.memory;
    for (let i = 0; i < 10_000; i++) layer.forward(x, { cache });
    expect(attn.memory).toMatchObject({ bytesInUse, totalBytes });
  });
});
