/** `selfAttention`: the seven steps, each against float64. */
import { type Attention, loadAttention } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { referenceLayer } from "./layer-reference.js";
import { error, randomTensor } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

/** Weights of a layer; sums of 48 products of numbers up to 1 are kept near 1. */
function weightsOf(embed: number, heads: number, kvHeads: number, dim: number, valueDim = dim, keyDim = embed, valueInputDim = keyDim) {
  const size = 1 / Math.sqrt(embed);
  return {
    wq: randomTensor([heads * dim, embed], 1, 3 * size),
    wk: randomTensor([kvHeads * dim, keyDim], 2, 3 * size),
    wv: randomTensor([kvHeads * valueDim, valueInputDim], 3, size),
    wo: randomTensor([embed, heads * valueDim], 4, size),
    bq: randomTensor([heads * dim], 5),
    bk: randomTensor([kvHeads * dim], 6),
    bv: randomTensor([kvHeads * valueDim], 7),
    bo: randomTensor([embed], 8),
  };
}

describe("the formula", () => {
  it("N27: identity weights give back x, the output bias is added", () => {
    const x = { data: Float32Array.of(1, 2), shape: [1, 2] };
    const one = { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] };
    const weights = { wq: one, wk: one, wv: one, wo: one };
    expect(Array.from(attn.selfAttention(x, weights, { numHeads: 1 }).output.data)).toEqual([1, 2]);
    const bo = { data: Float32Array.of(10, 20), shape: [2] };
    expect(Array.from(attn.selfAttention(x, { ...weights, bo }, { numHeads: 1 }).output.data)).toEqual([11, 22]);
  });

  it.each(["bq", "bk", "bv", "bo"] as const)("N27: %s may be missing by itself", (name) => {
    const x = randomTensor([7, 24], 9);
    const weights = { ...weightsOf(24, 4, 4, 6), [name]: undefined };
    const got = attn.selfAttention(x, weights, { numHeads: 4 });
    expect(error(got.output.data, referenceLayer(x, weights, { numHeads: 4 }).output.data)).toBeLessThan(1);
  });

  it.each([
    ["one row", [1, 24], 4, 4, 6, {}],
    ["two axes", [7, 24], 4, 2, 6, { causal: true }],
    ["a batch", [3, 11, 24], 6, 2, 4, { window: { left: 3, right: 1 } }],
    ["one key head", [2, 70, 40], 5, 1, 8, { causal: true, softcap: 3 }],
    ["wider heads", [2, 9, 20], 3, 3, 17, { scale: 0.2 }],
    ["lengths", [2, 9, 20], 2, 1, 10, { keyLengths: [4, 9] }],
  ] as const)("%s: every step agrees with float64", (_, shape, numHeads, numKvHeads, dim, options) => {
    const x = randomTensor(shape, 20);
    const weights = weightsOf(shape[shape.length - 1]!, numHeads, numKvHeads, dim);
    const given = JSON.parse(JSON.stringify(options)) as Record<string, never>;
    const { output, steps } = attn.selfAttention(x, weights, { numHeads, numKvHeads, trace: true, ...given });
    const expected = referenceLayer(x, weights, { numHeads, numKvHeads, ...given });
    const scale = (options as { scale?: number }).scale ?? 1 / Math.sqrt(dim);
    expect(error(steps.query.data, expected.query.data)).toBeLessThan(1);
    expect(error(steps.key.data, expected.key.data)).toBeLessThan(1);
    expect(error(steps.value.data, expected.value.data)).toBeLessThan(1);
    expect(
      error(
        steps.scores.data,
        expected.attention.scaled.map((score) => score / scale),
        2e-5,
      ),
    ).toBeLessThan(1);
    expect(error(steps.scaledScores.data, expected.attention.scaled, 1e-5)).toBeLessThan(1);
    expect(error(steps.maskedScores.data, expected.attention.masked, 1e-5)).toBeLessThan(1);
    expect(error(steps.weights.data, expected.attention.weights)).toBeLessThan(1);
    expect(error(steps.context.data, expected.context.data)).toBeLessThan(1);
    expect(error(output.data, expected.output.data)).toBeLessThan(1);
    const leading = shape.length === 3 ? [shape[0]] : [];
    const length = shape[shape.length - 2];
    expect(output.shape).toEqual([...shape]);
    expect(steps.query.shape).toEqual([...leading, numHeads, length, dim]);
    expect(steps.key.shape).toEqual([...leading, numKvHeads, length, dim]);
    expect(steps.weights.shape).toEqual([...leading, numHeads, length, length]);
    expect(steps.context.shape).toEqual([...leading, length, numHeads * dim]);
    expect(attn.selfAttention(x, weights, { numHeads, numKvHeads, ...given }).output.data).toEqual(output.data);
  });

  it("cross attention: keys and values from another sequence, of other widths", () => {
    const x = randomTensor([2, 5, 24], 30);
    const key = randomTensor([2, 9, 16], 31);
    const value = randomTensor([2, 9, 12], 32);
    const weights = weightsOf(24, 4, 2, 6, 5, 16, 12);
    const options = { numHeads: 4, numKvHeads: 2, key, value };
    const got = attn.selfAttention(x, weights, { ...options, returnWeights: true });
    const expected = referenceLayer(x, weights, options);
    expect(error(got.output.data, expected.output.data)).toBeLessThan(1);
    expect(error(got.weights!.data, expected.attention.weights)).toBeLessThan(1);
    expect(got.weights!.shape).toEqual([2, 4, 5, 9]);
    // With equal widths, key alone is enough.
    const same = weightsOf(24, 4, 2, 6, 6, 16);
    expect(
      error(
        attn.selfAttention(x, same, { numHeads: 4, key }).output.data,
        referenceLayer(x, same, { numHeads: 4, numKvHeads: 2, key }).output.data,
      ),
    ).toBeLessThan(1);
  });

  it("mask, bias, ALiBi and sinks hold together", () => {
    const x = randomTensor([2, 8, 24], 40);
    const weights = weightsOf(24, 4, 2, 6);
    const options = {
      mask: { data: Uint8Array.from({ length: 2 * 8 * 8 }, (_, i) => (i % 5 === 2 ? 0 : 1)), shape: [2, 1, 8, 8] },
      bias: randomTensor([4, 8, 8], 41),
      causal: true,
      alibiSlopes: [0.5, 0.25, 0.1, 0.05],
      sinks: [0, 1, -1, 0.5],
    };
    const got = attn.selfAttention(x, weights, { numHeads: 4, ...options });
    expect(error(got.output.data, referenceLayer(x, weights, { numHeads: 4, numKvHeads: 2, ...options }).output.data)).toBeLessThan(1);
  });

  it("an extra key is seen by every query, whatever the masks say", () => {
    const x = randomTensor([2, 8, 24], 50);
    const weights = { ...weightsOf(24, 4, 4, 6), extraKey: randomTensor([1, 1, 24], 51), extraValue: randomTensor([1, 1, 24], 52) };
    const seen = (b: number, t: number, s: number) => s === 8 || (s <= t && s < [5, 8][b]! && (t + s) % 3 !== 0);
    const mask = (columns: number) => ({
      data: Uint8Array.from({ length: 2 * 8 * columns }, (_, i) => {
        const s = i % columns;
        return columns === 9 ? Number(seen(Math.floor(i / 72), Math.floor(i / 9) % 8, s)) : Number(((Math.floor(i / 8) % 8) + s) % 3 !== 0);
      }),
      shape: [2, 1, 8, columns],
    });
    const bias = randomTensor([4, 8, 8], 53);
    const wider = {
      data: Float32Array.from({ length: 4 * 8 * 9 }, (_, i) => (i % 9 === 8 ? 0 : bias.data[Math.floor(i / 9) * 8 + (i % 9)]!)),
      shape: [4, 8, 9],
    };
    const got = attn.selfAttention(x, weights, {
      numHeads: 4,
      causal: true,
      keyLengths: [5, 8],
      mask: mask(8),
      bias,
      returnWeights: true,
      trace: true,
    });
    const expected = referenceLayer(x, weights, { numHeads: 4, mask: mask(9), bias: wider });
    expect(got.weights!.shape).toEqual([2, 4, 8, 9]);
    expect(error(got.weights!.data, expected.attention.weights)).toBeLessThan(1);
    expect(error(got.steps.weights.data, expected.attention.weights)).toBeLessThan(1);
    expect(error(got.output.data, expected.output.data)).toBeLessThan(1);
    const plain = attn.selfAttention(x, weights, { numHeads: 4 });
    expect(error(plain.output.data, referenceLayer(x, weights, { numHeads: 4 }).output.data)).toBeLessThan(1);
  });
});

describe("forms of the arguments", () => {
  it("[in, out] weights by option", () => {
    const x = randomTensor([7, 24], 60);
    const weights = weightsOf(24, 4, 2, 6);
    const turned = Object.fromEntries(
      Object.entries(weights).map(([name, { data, shape }]) => {
        if (shape.length === 1) return [name, { data, shape }];
        const [rows, columns] = shape as [number, number];
        return [
          name,
          {
            data: Float32Array.from({ length: data.length }, (_, i) => data[(i % rows) * columns + Math.floor(i / rows)]!),
            shape: [columns, rows],
          },
        ];
      }),
    ) as typeof weights;
    const options = { numHeads: 4, causal: true };
    expect(attn.selfAttention(x, turned, { ...options, weightLayout: "in-out" }).output.data).toEqual(
      attn.selfAttention(x, weights, options).output.data,
    );
  });

  it("float16 in, float16 out", () => {
    const one = { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] };
    const x = { data: Uint16Array.of(0x3c00, 0x4000), shape: [1, 2], dtype: "float16" } as const; // 1, 2
    const { output } = attn.selfAttention(x, { wq: one, wk: one, wv: one, wo: one }, { numHeads: 1 });
    expect(output.data).toEqual(x.data);
    expect((output as { dtype?: string }).dtype).toBe("float16");
  });

  it("out: a buffer of the instance, or an array of the caller", () => {
    const x = randomTensor([7, 24], 70);
    const weights = weightsOf(24, 4, 2, 6);
    const expected = attn.selfAttention(x, weights, { numHeads: 4 }).output.data;
    const buffer = attn.buffer([7, 24]);
    expect(attn.selfAttention(x, weights, { numHeads: 4, out: buffer }).output).toBe(buffer);
    expect(buffer.data).toEqual(expected);
    const array = { data: new Float32Array(7 * 24), shape: [7, 24] };
    attn.selfAttention(x, weights, { numHeads: 4, out: array });
    expect(array.data).toEqual(expected);
    buffer.dispose();
  });

  it("length 0 is legal", () => {
    const { output, steps } = attn.selfAttention({ data: new Float32Array(0), shape: [2, 0, 24] }, weightsOf(24, 4, 2, 6), {
      numHeads: 4,
      trace: true,
    });
    expect(output.shape).toEqual([2, 0, 24]);
    expect(steps.weights.shape).toEqual([2, 4, 0, 0]);
    expect(
      attn.selfAttention({ data: new Float32Array(0), shape: [0, 5, 24] }, weightsOf(24, 4, 2, 6), { numHeads: 4 }).output.shape,
    ).toEqual([0, 5, 24]);
  });

  it("results are own memory, inputs stay as they are, memory does not grow", () => {
    const x = randomTensor([7, 24], 80);
    const weights = weightsOf(24, 4, 2, 6);
    const before = [x.data.slice(), weights.wq.data.slice()];
    const call = () => attn.selfAttention(x, weights, { numHeads: 4, trace: true });
    const { output } = call();
    expect(output.data.buffer.byteLength).toBe(output.data.byteLength);
    expect([x.data, weights.wq.data]).toEqual(before);
    const { bytesInUse, totalBytes } = attn.memory;
    for (let i = 0; i < 1000; i++) call();
    expect(() => attn.selfAttention(x, weights, { numHeads: 5 })).toThrow();
    expect(attn.memory).toMatchObject({ bytesInUse, totalBytes });
  });
});

describe("errors name the argument, what was expected and what came", () => {
  const x = randomTensor([7, 24], 1);
  const weights = weightsOf(24, 4, 2, 6);
  it.each([
    ["heads that do not divide", () => attn.selfAttention(x, weights, { numHeads: 5 }), "shape", "weights.wq"],
    ["kv heads that do not divide", () => attn.selfAttention(x, weights, { numHeads: 4, numKvHeads: 3 }), "shape", "options.numKvHeads"],
    ["no heads", () => attn.selfAttention(x, weights, {} as never), "option", "options.numHeads"],
    ["no wk", () => attn.selfAttention(x, { ...weights, wk: undefined } as never, { numHeads: 4 }), "dtype", "weights.wk"],
    [
      "a bias that is too long",
      () => attn.selfAttention(x, { ...weights, bq: randomTensor([25], 1) }, { numHeads: 4 }),
      "shape",
      "weights.bq",
    ],
    [
      "a wo that does not fit",
      () => attn.selfAttention(x, { ...weights, wo: randomTensor([24, 23], 1) }, { numHeads: 4 }),
      "shape",
      "weights.wo",
    ],
    ["an unknown weight", () => attn.selfAttention(x, { ...weights, wx: x } as never, { numHeads: 4 }), "option", "weights.wx"],
    ["an unknown option", () => attn.selfAttention(x, weights, { numHead: 4 } as never), "option", "options.numHead"],
    ["a wrong width", () => attn.selfAttention(randomTensor([7, 23], 1), weights, { numHeads: 4 }), "shape", "x"],
    ["a wrong rank", () => attn.selfAttention(randomTensor([24], 1), weights, { numHeads: 4 }), "shape", "x"],
    ["a value without a key", () => attn.selfAttention(x, weights, { numHeads: 4, value: x }), "option", "options.value"],
    [
      "a key of another batch",
      () => attn.selfAttention(x, weights, { numHeads: 4, key: randomTensor([2, 7, 24], 1) }),
      "shape",
      "options.key",
    ],
    ["positions without rotary", () => attn.selfAttention(x, weights, { numHeads: 4, positions: 3 }), "option", "options.positions"],
    ["a trace that is no boolean", () => attn.selfAttention(x, weights, { numHeads: 4, trace: 1 } as never), "option", "options.trace"],
    [
      "causal with other lengths",
      () => attn.selfAttention(x, weights, { numHeads: 4, causal: true, key: randomTensor([9, 24], 1) }),
      "option",
      "options.causal",
    ],
  ])("%s", (_, call, code, argument) => {
    const { bytesInUse } = attn.memory;
    const caught = thrown(call);
    expect(caught).toMatchObject({ name: "AttentionError", code, argument });
    expect(caught.message).toMatch(/expected|no such option/);
    expect(attn.memory.bytesInUse).toBe(bytesInUse);
  });
});
