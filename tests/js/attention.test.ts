/** Numbers and meaning: part N of the user cases, each under its number. What is compared with is reference.ts. */
import { type Attention, alibiSlopes, loadAttention, tensor } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { error, randomTensor, type ReferenceOptions, referenceAttention, seeded } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const LN3 = Math.log(3);
const column = (values: number[]) => tensor(values.map((value) => [value]));
const zeros = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });
const filled = (shape: number[], value: number) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value), shape });
const bits = (rows: number[][]) => ({ data: Uint8Array.from(rows.flat()), shape: [rows.length, rows[0]!.length] });
const near = (got: ArrayLike<number>, expected: number[], tolerance = 2e-6) => {
  expect(Array.from(got).length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) expect(Math.abs(got[i]! - expected[i]!)).toBeLessThanOrEqual(tolerance);
};

describe("rows and masks", () => {
  it("N01: a row without keys gives 0", () => {
    const query = randomTensor([2, 3], 1);
    const key = randomTensor([2, 3], 2);
    const value = column([4, 8]);
    const masked = attn.scaledDotProductAttention(query, key, value, {
      mask: bits([
        [0, 0],
        [1, 1],
      ]),
      returnWeights: true,
    });
    const plain = attn.scaledDotProductAttention(query, key, value, { returnWeights: true });
    expect(masked.output.data[0]).toBe(0);
    expect(Array.from(masked.weights!.data.subarray(0, 2))).toEqual([0, 0]);
    expect(masked.output.data[1]).toBe(plain.output.data[1]);
    expect(masked.weights!.data.subarray(2)).toEqual(plain.weights!.data.subarray(2));
  });

  it("N02: a large negative bias is not a mask, -Infinity is one", () => {
    const query = zeros(1, 2);
    const key = randomTensor([3, 2], 1);
    const value = column([3, 6, 9]);
    const large = attn.scaledDotProductAttention(query, key, value, { bias: [[-1e9, -1e9, -1e9]], returnWeights: true });
    near(large.weights!.data, [1 / 3, 1 / 3, 1 / 3]);
    const infinite = attn.scaledDotProductAttention(query, key, value, { bias: [[-Infinity, -Infinity, -Infinity]], returnWeights: true });
    expect(Array.from(infinite.weights!.data)).toEqual([0, 0, 0]);
    expect(infinite.output.data[0]).toBe(0);
  });

  it("N03: causal, square", () => {
    near(attn.scaledDotProductAttention(zeros(3, 1), zeros(3, 1), column([3, 6, 9]), { causal: true }).output.data, [3, 4.5, 6]);
  });

  it("N04: causal with more keys than queries needs a name", () => {
    const value = column([1, 2, 3, 4]);
    const run = (queries: number, causal: "top-left" | "bottom-right") =>
      attn.scaledDotProductAttention(zeros(queries, 1), zeros(4, 1), value, { causal }).output.data;
    near(run(1, "bottom-right"), [2.5]);
    near(run(2, "bottom-right"), [2, 2.5]);
    near(run(1, "top-left"), [1]);
    near(run(2, "top-left"), [1, 1.5]);
    const failure = thrown(() => attn.scaledDotProductAttention(zeros(2, 1), zeros(4, 1), value, { causal: true }));
    expect(failure.code).toBe("option");
    expect(failure.message).toMatch(/"top-left".*"bottom-right"/);
    near(
      attn.scaledDotProductAttention(zeros(2, 1), zeros(4, 1), value, { causal: true, alignment: "bottom-right" }).output.data,
      [2, 2.5],
    );
    near(attn.scaledDotProductAttention(zeros(2, 1), zeros(4, 1), value, { causal: true, queryOffset: 1 }).output.data, [1.5, 2]);
  });

  it("N05: weights on request are what was applied", () => {
    const query = randomTensor([2, 4, 5, 8], 1);
    const key = randomTensor([2, 2, 7, 8], 2);
    const value = randomTensor([2, 2, 7, 3], 3);
    const next = seeded(4);
    const mask = { data: Uint8Array.from({ length: 2 * 4 * 5 * 7 }, () => (next() > 0.2 ? 1 : 0)), shape: [2, 4, 5, 7] };
    mask.data.fill(0, 0, 7); // a row that sees nothing
    const options: ReferenceOptions[] = [
      {},
      { mask },
      { causal: "bottom-right" },
      { causal: "top-left", mask },
      { keyLengths: [7, 3] },
      { bias: randomTensor([4, 5, 7], 5, 3) },
      { window: { left: 1, right: 2 }, alignment: "top-left" },
      { keyLengths: [0, 5], causal: "bottom-right", mask },
    ];
    for (const option of options) {
      const plain = attn.scaledDotProductAttention(query, key, value, option as object);
      const all = attn.scaledDotProductAttention(query, key, value, { ...(option as object), returnWeights: true });
      const mean = attn.scaledDotProductAttention(query, key, value, { ...(option as object), returnWeights: "mean" });
      const some = attn.scaledDotProductAttention(query, key, value, { ...(option as object), returnWeights: { heads: [3, 0] } });
      const reference = referenceAttention(query, key, value, option);
      expect(all.weights!.shape).toEqual([2, 4, 5, 7]);
      expect(mean.weights!.shape).toEqual([2, 5, 7]);
      expect(some.weights!.shape).toEqual([2, 2, 5, 7]);
      for (const result of [all, mean, some]) expect(error(result.output.data, plain.output.data)).toBeLessThanOrEqual(1);
      expect(error(all.weights!.data, reference.weights)).toBeLessThanOrEqual(1);
      const weights = all.weights!.data;
      for (let row = 0; row < 2 * 4 * 5; row++) {
        let sum = 0;
        for (let s = 0; s < 7; s++) {
          sum += weights[row * 7 + s]!;
          if (reference.weights[row * 7 + s] === 0) expect(weights[row * 7 + s]).toBe(0);
        }
        expect(sum === 0 || Math.abs(sum - 1) <= 1e-6).toBe(true);
      }
      for (let b = 0; b < 2; b++) {
        for (let i = 0; i < 35; i++) {
          let sum = 0;
          for (let h = 0; h < 4; h++) sum += weights[(b * 4 + h) * 35 + i]!;
          expect(Math.abs(mean.weights!.data[b * 35 + i]! - sum / 4)).toBeLessThanOrEqual(1e-6);
          expect(some.weights!.data[b * 70 + i]).toBe(weights[(b * 4 + 3) * 35 + i]);
          expect(some.weights!.data[b * 70 + 35 + i]).toBe(weights[b * 4 * 35 + i]);
        }
      }
    }
  });

  it("N06: 1 = attend", () => {
    const run = (mask: object) =>
      attn.scaledDotProductAttention(zeros(1, 1), zeros(2, 1), column([5, 7]), { mask: mask as never }).output.data[0];
    expect(run(bits([[1, 0]]))).toBe(5);
    expect(run([[true, false]])).toBe(5);
    expect(run({ data: [true, false], shape: [1, 2] })).toBe(5);
    expect(run(Uint8Array.of(1, 0))).toBe(5);
    expect(run({ data: Uint8Array.of(255, 0), dims: [2] })).toBe(5);
    expect(run(tensor([[true, false]]))).toBe(5);
  });

  it("N07: a float mask is added", () => {
    const run = (bias: number[][], value: number[]) =>
      attn.scaledDotProductAttention(zeros(1, 1), zeros(2, 1), column(value), { bias, returnWeights: true });
    near(run([[0, LN3]], [0, 4]).output.data, [3]);
    near(run([[0, 1]], [0, 4]).weights!.data, [0.2689414, 0.7310586]);
  });

  it("N08: element types give right numbers or name the argument", () => {
    const query = zeros(1, 1);
    const key = zeros(2, 1);
    const value = column([5, 7]);
    const cases: [string, object][] = [
      ["options.mask", { mask: new Float32Array(2) }],
      ["options.mask", { mask: { data: new Float32Array(2), shape: [1, 2] } }],
      ["options.mask", { mask: [[1, 0.5]] }],
      ["options.mask", { mask: { data: [1, 0], shape: [1, 2] } }],
      ["options.mask", { mask: { data: new Int32Array(2), shape: [1, 2] } }],
      ["options.mask", { mask: { data: new BigInt64Array(2), shape: [1, 2] } }],
      ["options.mask", { mask: "causal" }],
      ["options.mask", { mask: null }],
      ["options.bias", { bias: new Uint8Array(2) }],
      ["options.bias", { bias: { data: new Uint8Array(2), shape: [1, 2] } }],
      ["options.bias", { bias: [[true, false]] }],
      ["options.bias", { bias: { data: new Float64Array(2), shape: [1, 2] } }],
      ["options.bias", { bias: 3 }],
    ];
    for (const [argument, options] of cases) {
      const failure = thrown(() => attn.scaledDotProductAttention(query, key, value, options));
      expect(failure).toBeInstanceOf(TypeError);
      expect(failure.code).toBe("dtype");
      expect(failure.message.startsWith(argument)).toBe(true);
    }
    expect(thrown(() => attn.scaledDotProductAttention(query, key, value, { mask: new Float32Array(2) as never })).message).toContain(
      "bias",
    );
    // Written down as 0 and 1, or bare, nothing else can be meant.
    for (const mask of [[[1, 0]], [1, 0], [true, false], Uint8Array.of(1, 0)]) {
      near(attn.scaledDotProductAttention(query, key, value, { mask }).output.data, [5]);
    }
    const size = thrown(() => attn.scaledDotProductAttention(query, key, value, { mask: new Uint8Array(3) }));
    expect(size.message).toMatch(/2 elements.*3/);
    const shape = thrown(() => attn.scaledDotProductAttention(query, key, value, { mask: { data: new Uint8Array(3), shape: [1, 3] } }));
    expect(shape.message).toContain("[1, 1, 1, 2]");
    expect(shape.message).toContain("[1, 3]");
  });

  it("masks broadcast as NumPy does: rank 3 is (heads, queries, keys)", () => {
    const query = randomTensor([2, 3, 4, 5], 1);
    const key = randomTensor([2, 3, 6, 5], 2);
    const value = randomTensor([2, 3, 6, 5], 3);
    for (const shape of [
      [6],
      [1],
      [],
      [4, 6],
      [4, 1],
      [3, 4, 6],
      [3, 1, 6],
      [1, 4, 6],
      [2, 1, 1, 6],
      [2, 3, 4, 6],
      [1, 3, 1, 1],
      [2, 1, 4, 1],
    ]) {
      const count = shape.reduce((a, b) => a * b, 1);
      const next = seeded(count);
      const mask = { data: Uint8Array.from({ length: count }, () => (next() > -0.3 ? 1 : 0)), shape };
      const bias = randomTensor(shape, 7, 2);
      for (const options of [{ mask }, { bias }, { mask, bias }]) {
        const { output } = attn.scaledDotProductAttention(query, key, value, options);
        expect(error(output.data, referenceAttention(query, key, value, options).output)).toBeLessThanOrEqual(1);
      }
    }
  });
});

describe("heads and sizes", () => {
  it("N09: grouped heads repeat their key/value head", () => {
    const run = (heads: number, values: number[]) =>
      attn.scaledDotProductAttention(zeros(heads, 1, 1), zeros(values.length, 1, 1), {
        data: Float32Array.from(values),
        shape: [values.length, 1, 1],
      }).output.data;
    expect(Array.from(run(4, [5, 9]))).toEqual([5, 5, 9, 9]);
    expect(Array.from(run(4, [5]))).toEqual([5, 5, 5, 5]);
  });

  it("N10: head counts that do not divide", () => {
    for (const [heads, kvHeads] of [
      [4, 3],
      [2, 4],
      [0, 1],
      [1, 0],
      [0, 0],
    ] as const) {
      const failure = thrown(() => attn.scaledDotProductAttention(zeros(heads, 1, 1), zeros(kvHeads, 1, 1), zeros(kvHeads, 1, 1)));
      expect(failure).toBeInstanceOf(RangeError);
      expect(failure.code).toBe("shape");
      expect(failure.message).toMatch(/heads?/);
    }
  });

  it("N11: any range of scores", () => {
    const run = (scores: number[]) =>
      attn.scaledDotProductAttention(tensor([[1]]), column(scores), column(scores.map((_, i) => i)), { scale: 1, returnWeights: true })
        .weights!.data;
    near(run([1000, 1000]), [0.5, 0.5]);
    near(run([-1000, -1000]), [0.5, 0.5]);
    near(run([1000, 0]), [1, 0]);
    near(run([3e4, 3e4, -3e4]), [0.5, 0.5, 0]);
    const large = attn.scaledDotProductAttention(randomTensor([3, 64], 1, 1e15), randomTensor([5, 64], 2, 1e15), randomTensor([5, 64], 3));
    expect(large.output.data.every(Number.isFinite)).toBe(true);
  });

  it("N12: every length and width from 1 to 70", () => {
    const triples: [number, number, number][] = [];
    for (let n = 1; n <= 70; n++)
      triples.push([n, ((n * 29) % 70) + 1, ((n * 43) % 70) + 1], [((n * 17) % 70) + 1, n, n], [n, n, ((n * 31) % 70) + 1]);
    for (const [length, width, valueWidth] of triples) {
      const query = randomTensor([2, width], length);
      const key = randomTensor([length, width], width);
      const ones = attn.scaledDotProductAttention(query, key, filled([length, valueWidth], 1)).output.data;
      expect(Math.max(...ones.map((x) => Math.abs(x - 1)))).toBeLessThanOrEqual(1e-6 * length);
      const ramp = zeros(length, valueWidth);
      for (let s = 0; s < length; s++) ramp.data.fill(s, s * valueWidth, (s + 1) * valueWidth);
      const middle = attn.scaledDotProductAttention(zeros(2, width), key, ramp).output.data;
      expect(Math.max(...middle.map((x) => Math.abs(x - (length - 1) / 2)))).toBeLessThanOrEqual(1e-6 * length);
      const value = randomTensor([length, valueWidth], 5);
      const { output } = attn.scaledDotProductAttention(query, key, value);
      expect(error(output.data, referenceAttention(query, key, value).output)).toBeLessThanOrEqual(1);
    }
  });

  it("N13: value width differs from head width", () => {
    const { output } = attn.scaledDotProductAttention(
      tensor([[1, 0]]),
      tensor([
        [0, 0],
        [LN3, 0],
      ]),
      tensor([
        [0, 4, 8, 12, 16],
        [4, 8, 12, 16, 20],
      ]),
      { scale: 1 },
    );
    expect(output.shape).toEqual([1, 5]);
    near(output.data, [3, 7, 11, 15, 19], 1e-5);
  });

  it("N14: sub-arrays that start at an odd element", () => {
    const shapes = { query: [3, 5], key: [4, 5], value: [4, 7] };
    const whole = Object.fromEntries(Object.entries(shapes).map(([name, shape], i) => [name, randomTensor(shape, i + 1)]));
    const large: Float32Array[] = [];
    const inside = (given: { data: Float32Array; shape: number[] }) => {
      const array = new Float32Array(given.data.length + 3).fill(7e7);
      array.set(given.data, 1);
      large.push(array.slice());
      large.push(array);
      return { data: array.subarray(1, 1 + given.data.length), shape: given.shape };
    };
    const bias = randomTensor([3, 4], 9);
    const maskArray = Uint8Array.of(9, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 9);
    const mask = { data: maskArray.subarray(1, 13), shape: [3, 4] };
    const plain = attn.scaledDotProductAttention(whole["query"]!, whole["key"]!, whole["value"]!, {
      bias,
      mask: { data: mask.data.slice(), shape: [3, 4] },
    });
    const target = new Float32Array(3 * 7 + 2).fill(7e7);
    const out = { data: target.subarray(1, 22), shape: [3, 7] };
    const result = attn.scaledDotProductAttention(inside(whole["query"]!), inside(whole["key"]!), inside(whole["value"]!), {
      bias: inside(bias),
      mask,
      out,
    });
    expect(result.output).toBe(out);
    expect(Array.from(out.data)).toEqual(Array.from(plain.output.data));
    expect(target[0]).toBe(7e7);
    expect(target[22]).toBe(7e7);
    for (let i = 0; i < large.length; i += 2) expect(large[i]).toEqual(large[i + 1]);
  });

  it("N15: scale", () => {
    const query = tensor([[2, 0, 0, 0]]);
    const key = tensor([
      [0, 0, 0, 0],
      [LN3, 0, 0, 0],
    ]);
    const run = (options: object) =>
      attn.scaledDotProductAttention(query, key, zeros(2, 1), { ...options, returnWeights: true }).weights!.data;
    near(run({}), [0.25, 0.75]);
    near(run({ scale: undefined }), [0.25, 0.75]);
    near(run({ scale: 1 }), [0.1, 0.9]);
    near(run({ scale: 0 }), [0.5, 0.5]);
    for (const scale of [Number.NaN, Number.POSITIVE_INFINITY, 1e300, "1", null]) {
      const failure = thrown(() => run({ scale }));
      expect(failure.code).toBe("option");
      expect(failure.message).toMatch(/^options\.scale: /);
    }
  });

  it("N16: a batch row does not know its neighbours", () => {
    const lengths = [3, 5];
    const query = randomTensor([2, 2, 5, 4], 1);
    const key = randomTensor([2, 2, 5, 4], 2);
    const value = randomTensor([2, 2, 5, 4], 3);
    const mask = { data: Uint8Array.from([1, 1, 1, 0, 0, 1, 1, 1, 1, 1]), shape: [2, 1, 1, 5] };
    const byMask = attn.scaledDotProductAttention(query, key, value, { mask }).output.data;
    const byLength = attn.scaledDotProductAttention(query, key, value, { keyLengths: lengths }).output.data;
    for (let b = 0; b < 2; b++) {
      for (let h = 0; h < 2; h++) {
        const length = lengths[b]!;
        const own = (given: { data: Float32Array }) => ({
          data: given.data.slice((b * 2 + h) * 20, (b * 2 + h) * 20 + length * 4),
          shape: [length, 4],
        });
        const alone = attn.scaledDotProductAttention(own(query), own(key), own(value)).output.data;
        for (const together of [byMask, byLength]) {
          near(together.slice((b * 2 + h) * 20, (b * 2 + h) * 20 + length * 4), Array.from(alone), 1e-6);
        }
      }
    }
  });

  it("N17: length 0 is legal, other nonsense is not", () => {
    const run = (q: number[], k: number[], v: number[], options?: object) =>
      attn.scaledDotProductAttention(zeros(...q), zeros(...k), zeros(...v), options);
    expect(run([0, 2, 3, 4], [0, 2, 5, 4], [0, 2, 5, 6]).output.shape).toEqual([0, 2, 3, 6]);
    expect(run([2, 0, 4], [2, 5, 4], [2, 5, 6], { returnWeights: true }).weights!.shape).toEqual([2, 0, 5]);
    const none = run([2, 3, 4], [2, 0, 4], [2, 0, 6], { returnWeights: true, returnLse: true });
    expect(none.output.shape).toEqual([2, 3, 6]);
    expect(none.output.data.every((x) => x === 0)).toBe(true);
    expect(none.weights!.shape).toEqual([2, 3, 0]);
    expect(Array.from(none.lse!.data)).toEqual(new Array(6).fill(-Infinity));
    expect(run([0, 4], [0, 4], [0, 6], { causal: true }).output.shape).toEqual([0, 6]);
    expect(run([0, 65536, 65536, 8], [0, 65536, 65536, 8], [0, 65536, 65536, 8]).output.shape).toEqual([0, 65536, 65536, 8]);
    const scores = run([2, 0, 4], [2, 5, 4], [2, 5, 6], { returnWeights: true, returnLse: true, returnScores: "masked" });
    expect(scores.scores!.shape).toEqual([2, 0, 5]);
    expect(run([3, 4], [5, 4], [5, 0], { returnWeights: true }).weights!.data.length).toBe(15);
    for (const size of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3", null, undefined]) {
      const failure = thrown(() =>
        attn.scaledDotProductAttention({ data: new Float32Array(4), shape: [1, size as number] }, zeros(2, 4), zeros(2, 4)),
      );
      expect(failure.code).toBe("shape");
      expect(failure.message).toMatch(/^query: /);
    }
  });

  it("N18: NaN that is read is seen, NaN that is hidden is not", () => {
    const value = column([5, Number.NaN]);
    expect(attn.scaledDotProductAttention(zeros(1, 1), zeros(2, 1), value, { mask: bits([[1, 0]]) }).output.data[0]).toBe(5);
    expect(attn.scaledDotProductAttention(zeros(1, 1), zeros(2, 1), value).output.data[0]).toBeNaN();
    const half = attn.scaledDotProductAttention(
      zeros(1, 1),
      zeros(2, 1),
      tensor([
        [1, Number.NaN],
        [1, 2],
      ]),
    ).output.data;
    expect(half[0]).toBe(1);
    expect(half[1]).toBeNaN();
    // hidden by each of the other ways, in key and value, for finite and infinite poison
    for (const poison of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      for (const options of [
        { keyLengths: 1 },
        { causal: "top-left" },
        { bias: [[0, -Infinity]] },
        { window: { right: 0 }, alignment: "top-left" },
      ] as const) {
        const { output } = attn.scaledDotProductAttention(tensor([[1]]), column([1, poison]), column([5, poison]), options);
        expect(output.data[0]).toBe(5);
      }
    }
    // and read: in query and key
    expect(attn.scaledDotProductAttention(tensor([[Number.NaN]]), column([1, 2]), column([5, 7])).output.data[0]).toBeNaN();
    expect(attn.scaledDotProductAttention(tensor([[1]]), column([1, Number.NaN]), column([5, 7])).output.data[0]).toBeNaN();
  });

  it("N19: products of sizes do not wrap round", () => {
    for (const shape of [
      [65536, 65536],
      [65536, 32768],
      [2 ** 31, 2],
      [2 ** 16, 2 ** 16, 2 ** 16, 2 ** 16],
      [2 ** 52, 4],
    ]) {
      const failure = thrown(() => attn.scaledDotProductAttention({ data: new Float32Array(0), shape }, zeros(1, 2), zeros(1, 2)));
      expect(failure).toBeInstanceOf(RangeError);
      expect(failure.message).toMatch(/^query: /);
    }
    const long = { data: new Float32Array(70000), shape: [70000, 1] };
    const failure = thrown(() => attn.scaledDotProductAttention(long, long, long, { returnWeights: true }));
    expect(failure).toBeInstanceOf(RangeError);
    expect(failure.message).toContain(String(70000 * 70000 * 4));
    near(attn.scaledDotProductAttention(zeros(1, 1), zeros(2, 1), column([1, 3])).output.data, [2]);
  });

  it("N20: equal bits in two calls, and the same numbers in the relaxed build", async () => {
    const query = randomTensor([2, 3, 37, 24], 1, 2);
    const key = randomTensor([2, 3, 70, 24], 2, 2);
    const value = randomTensor([2, 3, 70, 24], 3);
    const run = (instance: Attention) => instance.scaledDotProductAttention(query, key, value, { causal: "bottom-right" }).output.data;
    expect(run(attn)).toEqual(run(attn));
    const baseline = await loadAttention({ variant: "simd" });
    expect(baseline.variant).toBe("simd");
    expect(error(run(attn), run(baseline))).toBeLessThanOrEqual(1);
  });
});

describe("options", () => {
  it("N23: sliding window", () => {
    const run = (count: number, values: number[], options: object) =>
      Array.from(attn.scaledDotProductAttention(zeros(count, 1), zeros(count, 1), column(values), options).output.data);
    expect(run(3, [2, 4, 8], { window: { left: 0, right: 0 } })).toEqual([2, 4, 8]);
    near(run(3, [2, 4, 8], { window: { left: 1 }, causal: true }), [2, 3, 6]);
    near(run(5, [0, 1, 2, 3, 4], { window: { left: 1, right: 2 } }), [1, 1.5, 2.5, 3, 3.5]);
    const open = run(3, [2, 4, 8], {});
    for (const side of [-1, Number.POSITIVE_INFINITY, undefined])
      expect(run(3, [2, 4, 8], { window: { left: side, right: side } })).toEqual(open);
    for (const side of [-2, 0.5, Number.NaN, "1", null]) {
      expect(thrown(() => run(3, [1, 2, 3], { window: { left: side } })).message).toMatch(/^options\.window\.left: /);
      expect(thrown(() => run(3, [1, 2, 3], { window: { right: side } })).message).toMatch(/^options\.window\.right: /);
    }
    expect(thrown(() => attn.scaledDotProductAttention(zeros(2, 1), zeros(4, 1), zeros(4, 1), { window: { left: 1 } })).message).toMatch(
      /"top-left".*"bottom-right"/,
    );
  });

  it("N24: soft cap", () => {
    const run = (key: number[], softcap: number) =>
      attn.scaledDotProductAttention(tensor([[1]]), column(key), column(key.map(() => 1)), {
        scale: 1,
        softcap,
        returnScores: "softcapped",
      }).scores!.data;
    near(run([0.5], 1), [0.4621172], 1e-6);
    near(run([0.5, -3e37, 3e37], 1), [0.4621172, -1, 1], 1e-6);
    near(run([0.5, 7], 0), [0.5, 7]);
    const finite = attn.scaledDotProductAttention(tensor([[1]]), column([3e38, -3e38]), column([1, 2]), { scale: 1, softcap: 30 });
    expect(finite.output.data.every(Number.isFinite)).toBe(true);
    for (const softcap of [-1, Number.NaN, Number.POSITIVE_INFINITY, "1", null]) {
      expect(thrown(() => run([1], softcap as number)).message).toMatch(/^options\.softcap: /);
    }
  });

  it("N26: layout", () => {
    const first = { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2, 1] }; // heads first: head 0 has 1, 2
    const positions = { data: Float32Array.of(1, 3, 2, 4), shape: [2, 2, 1] };
    const a = attn.scaledDotProductAttention(first, first, first).output;
    const b = attn.scaledDotProductAttention(positions, positions, positions, { layout: "bshd" }).output;
    expect(b.shape).toEqual([2, 2, 1]);
    expect(Array.from(b.data)).toEqual([a.data[0], a.data[2], a.data[1], a.data[3]]);
    const query = randomTensor([2, 5, 4, 6], 1);
    const key = randomTensor([2, 7, 2, 6], 2);
    const value = randomTensor([2, 7, 2, 3], 3);
    const result = attn.scaledDotProductAttention(query, key, value, { layout: "bshd", returnWeights: true, returnLse: true });
    const reference = referenceAttention(query, key, value, { layout: "bshd" });
    expect(result.output.shape).toEqual([2, 5, 4, 3]);
    expect(result.weights!.shape).toEqual([2, 4, 5, 7]);
    expect(result.lse!.shape).toEqual([2, 4, 5]);
    expect(error(result.output.data, reference.output)).toBeLessThanOrEqual(1);
    expect(error(result.weights!.data, reference.weights)).toBeLessThanOrEqual(1);
    expect(error(result.lse!.data, reference.lse)).toBeLessThanOrEqual(1);
    expect(thrown(() => attn.scaledDotProductAttention(query, key, value)).code).toBe("shape");
    expect(thrown(() => attn.scaledDotProductAttention(query, key, value, { layout: "sbhd" as never })).message).toMatch(
      /^options\.layout: /,
    );
  });

  it("N28: small weights", () => {
    const run = (score: number) =>
      attn.scaledDotProductAttention(tensor([[1]]), column([0, score]), column([0, 1]), { scale: 1, returnWeights: true });
    const small = run(-80).weights!.data[1]!;
    expect(Math.abs(small / 1.804851e-35 - 1)).toBeLessThanOrEqual(1e-5);
    const tiny = run(-100).weights!.data[1]!;
    expect(tiny >= 0 && tiny <= 3.8e-44).toBe(true);
    // exp over -100..0: one query whose weights are exp(score) / sum, the sum known from float64
    const steps = 1000;
    for (let from = 0; from < 100; from += 1) {
      const scores = Float32Array.from({ length: steps + 1 }, (_, i) => (i === 0 ? 0 : -(from + i / steps)));
      const { weights } = attn.scaledDotProductAttention(tensor([[1]]), { data: scores, shape: [steps + 1, 1] }, zeros(steps + 1, 1), {
        scale: 1,
        returnWeights: true,
      });
      let sum = 0;
      for (const score of scores) sum += Math.exp(score);
      const factor = 1 / weights!.data[0]!; // takes out the rounding of the sum, which is not the exponential's
      expect(Math.abs(factor / sum - 1)).toBeLessThanOrEqual(2e-6);
      let relative = 0; // above -87
      let absolute = 0; // under it
      let smallest = 1;
      for (let i = 1; i <= steps; i++) {
        const exact = Math.exp(scores[i]!);
        const got = weights!.data[i]! * factor;
        if (scores[i]! > -87 + Math.log(sum)) relative = Math.max(relative, Math.abs(got / exact - 1));
        else absolute = Math.max(absolute, Math.abs(got - exact));
        smallest = Math.min(smallest, got);
      }
      expect(relative).toBeLessThanOrEqual(7e-7); // 5e-7 for the exponential, the rest for the rounding of two weights
      expect(absolute).toBeLessThanOrEqual(1e-37 * sum);
      expect(smallest).toBeGreaterThanOrEqual(0);
    }
  });

  it("N29: equal scores give equal weights, rows sum to 1", () => {
    for (const length of [1, 2, 3, 5, 64, 65, 1000, 4096]) {
      const same = attn.scaledDotProductAttention(tensor([[0.3]]), filled([length, 1], 1.7), zeros(length, 1), { returnWeights: true })
        .weights!.data;
      expect(same.every((x) => x === same[0])).toBe(true);
      const next = attn.scaledDotProductAttention(randomTensor([3, 16], 1), randomTensor([length, 16], 2, 3), zeros(length, 1), {
        returnWeights: true,
      });
      for (const weights of [same, ...[0, 1, 2].map((row) => next.weights!.data.subarray(row * length, (row + 1) * length))]) {
        let sum = 0;
        for (const weight of weights) sum += weight;
        expect(Math.abs(sum - 1)).toBeLessThanOrEqual(1e-6);
      }
    }
  });

  it("N29: also where one key outweighs thousands of small ones", () => {
    // Each small weight alone is lost beside the large one when sums are kept in one float32; the core adds up tiles. These scores are the
    // worst there are: what is left of that error is just above 1e-6.
    for (const length of [1000, 4096]) {
      for (const score of [-12, -14, -15.54, -16.6]) {
        const scores = new Float32Array(length).fill(score);
        scores[0] = 0;
        const key = { data: scores, shape: [length, 1] };
        const { output, weights } = attn.scaledDotProductAttention(tensor([[1]]), key, filled([length, 1], 1), {
          scale: 1,
          returnWeights: true,
        });
        let sum = 0;
        for (const weight of weights.data) sum += weight;
        expect(Math.abs(sum - 1)).toBeLessThanOrEqual(2e-6);
        expect(error(output.data, [1])).toBeLessThanOrEqual(1);
      }
    }
  });

  it("ALiBi slopes are those of the paper", () => {
    expect(Array.from(alibiSlopes(8))).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i));
    near(alibiSlopes(12), [...[1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i), ...[1, 3, 5, 7].map((i) => 2 ** (-i / 2))], 1e-7);
    expect(attn.alibiSlopes(1)).toEqual(Float32Array.of(2 ** -8));
    for (const count of [0, -1, 1.5, Number.NaN, "8"]) expect(thrown(() => alibiSlopes(count as number)).code).toBe("option");
  });

  it("all options together agree with the formula", () => {
    const next = seeded(99);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(((next() + 1) / 2) * list.length)]!;
    const upTo = (limit: number) => Math.floor(((next() + 1) / 2) * limit);
    for (let round = 0; round < 300; round++) {
      const layout = pick(["bhsd", "bshd"] as const);
      const kvHeads = pick([1, 2, 3]);
      const heads = kvHeads * pick([1, 2, 4]);
      const batch = 1 + upTo(3);
      const [lengthQ, lengthK] = [1 + upTo(pick([6, 40])), 1 + upTo(pick([6, 90]))];
      const [width, valueWidth] = [1 + upTo(40), 1 + upTo(40)];
      const order = (h: number, s: number, d: number) => (layout === "bhsd" ? [batch, h, s, d] : [batch, s, h, d]);
      const query = randomTensor(order(heads, lengthQ, width), round);
      const key = randomTensor(order(kvHeads, lengthK, width), round + 1000);
      const value = randomTensor(order(kvHeads, lengthK, valueWidth), round + 2000);
      const options: ReferenceOptions & { returnWeights?: true; returnLse?: true } = { layout };
      if (next() > 0) options.causal = pick(["top-left", "bottom-right"] as const);
      else options.alignment = pick(["top-left", "bottom-right"] as const);
      if (next() > 0) options.window = pick([{ left: upTo(20) }, { right: upTo(20) }, { left: upTo(9), right: upTo(9) }]);
      if (next() > 0) options.keyLengths = Array.from({ length: batch }, () => upTo(lengthK + 1));
      if (next() > 0.3) options.softcap = pick([0, 1, 20]);
      if (next() > 0.3) options.scale = pick([0.1, 1, -0.5]);
      if (next() > 0) options.alibiSlopes = alibiSlopes(heads);
      if (next() > 0.3) options.sinks = Array.from({ length: heads }, () => next() * 3);
      const shapes = [[lengthK], [lengthQ, lengthK], [heads, 1, lengthK], [batch, 1, lengthQ, lengthK], [batch, heads, lengthQ, lengthK]];
      if (next() > 0) {
        const shape = pick(shapes);
        options.mask = { data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (next() > -0.6 ? 1 : 0)), shape };
      }
      if (next() > 0) {
        options.bias = randomTensor(pick(shapes), round + 3000, 2);
        const data = options.bias.data as Float32Array;
        for (let i = 0; i < data.length; i++) if (next() > 0.9) data[i] = Number.NEGATIVE_INFINITY;
      }
      const reference = referenceAttention(query, key, value, options);
      const plain = attn.scaledDotProductAttention(query, key, value, options as object);
      const full = attn.scaledDotProductAttention(query, key, value, {
        ...(options as object),
        returnWeights: true,
        returnLse: true,
        returnScores: "masked",
      });
      const what = JSON.stringify({
        round,
        layout,
        kvHeads,
        heads,
        batch,
        lengthQ,
        lengthK,
        width,
        valueWidth,
        ...options,
        mask: options.mask?.shape,
        bias: options.bias?.shape,
      });
      expect(error(plain.output.data, reference.output), what).toBeLessThanOrEqual(1);
      expect(error(full.output.data, reference.output), what).toBeLessThanOrEqual(1);
      expect(error(full.weights!.data, reference.weights), what).toBeLessThanOrEqual(1);
      expect(error(full.lse!.data, reference.lse, 1e-5, 1e-5), what).toBeLessThanOrEqual(1);
      expect(error(full.scores!.data, reference.masked, 1e-5, 1e-5), what).toBeLessThanOrEqual(1);
    }
  });
});
