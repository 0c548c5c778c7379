/** Rotary positions: both pairings, tables, and the scalings that models use, each against its published formula. */
import { type Attention, loadAttention, rotaryFrequencies } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { plainFrequencies, type ReferenceRotary, rotate } from "./layer-reference.js";
import { error, randomTensor } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const unit = { data: Float32Array.of(1, 0, 0, 0), shape: [1, 4] };
const numbers = (x: { data: ArrayLike<number> }) => Array.from(x.data, (value) => Number(value.toFixed(7)));

describe("the rotation", () => {
  it("N22: halves by default, interleaved by name, position 0 changes nothing", () => {
    expect(numbers(attn.rotaryEmbedding(unit, { positions: 1 }))).toEqual([0.5403023, 0, 0.841471, 0]);
    expect(numbers(attn.rotaryEmbedding(unit, { positions: 1, interleaved: true }))).toEqual([0.5403023, 0.841471, 0, 0]);
    expect(numbers(attn.rotaryEmbedding(unit))).toEqual([1, 0, 0, 0]);
    expect(thrown(() => attn.rotaryEmbedding({ data: new Float32Array(3), shape: [1, 3] }))).toMatchObject({ code: "shape" });
  });

  it("every width 2..70, full and partial, agrees with float64", () => {
    for (let dim = 2; dim <= 70; dim++) {
      const x = randomTensor([2, 2, 3, dim], dim);
      for (const interleaved of [false, true]) {
        for (const rotaryDim of new Set([dim - (dim % 2), 2 * Math.ceil(dim / 6)])) {
          const got = attn.rotaryEmbedding(x, { rotaryDim, interleaved, base: 500 });
          expect(error(got.data, rotate(x, { frequencies: plainFrequencies(rotaryDim, 500), interleaved }).data)).toBeLessThan(1);
        }
      }
    }
  });

  it("large positions are exact: angles are computed in float64", () => {
    const x = randomTensor([1, 1, 3, 64], 1);
    const got = attn.rotaryEmbedding(x, { positions: 1_000_000 });
    expect(error(got.data, rotate(x, { frequencies: plainFrequencies(64), position: (_, t) => 1_000_000 + t }).data)).toBeLessThan(1);
  });

  it("scores depend on the distance alone", () => {
    const [q, k] = [randomTensor([1, 32], 1), randomTensor([1, 32], 2)];
    const dot = (p: number, s: number) => {
      const [a, b] = [attn.rotaryEmbedding(q, { positions: p }).data, attn.rotaryEmbedding(k, { positions: s }).data];
      return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    };
    expect(Math.abs(dot(7, 3) - dot(107, 103))).toBeLessThan(1e-5);
    expect(Math.abs(dot(7, 3) - dot(7, 4))).toBeGreaterThan(1e-3);
  });

  it("positions: a start, a list, one list per batch row, nested, int64", () => {
    const x = randomTensor([2, 3, 4, 8], 3);
    const expected = (position: ReferenceRotary["position"]) => rotate(x, { frequencies: plainFrequencies(8), position: position! }).data;
    const check = (positions: never, position: ReferenceRotary["position"]) =>
      expect(error(attn.rotaryEmbedding(x, { positions }).data, expected(position))).toBeLessThan(1);
    check(5 as never, (_, t) => 5 + t);
    check([3, 1, 0, 9] as never, (_, t) => [3, 1, 0, 9][t]!);
    const both = [
      [3, 1, 0, 9],
      [4, 5, 6, 7],
    ];
    check(both as never, (b, t) => both[b]![t]!);
    check({ data: BigInt64Array.from(both.flat(), BigInt), shape: [2, 4] } as never, (b, t) => both[b]![t]!);
  });

  it("layout, float16, out, shapes without leading axes", () => {
    const x = randomTensor([2, 5, 3, 8], 4); // [batch, seq, heads, dim]
    const turned = { data: new Float32Array(x.data.length), shape: [2, 3, 5, 8] };
    const move = (from: Float32Array, to: Float32Array, back: boolean) => {
      for (let b = 0; b < 2; b++)
        for (let t = 0; t < 5; t++)
          for (let h = 0; h < 3; h++)
            for (let d = 0; d < 8; d++) {
              const [bshd, bhsd] = [((b * 5 + t) * 3 + h) * 8 + d, ((b * 3 + h) * 5 + t) * 8 + d];
              if (back) to[bshd] = from[bhsd]!;
              else to[bhsd] = from[bshd]!;
            }
    };
    move(x.data, turned.data, false);
    const expected = new Float32Array(x.data.length);
    move(attn.rotaryEmbedding(turned).data, expected, true);
    expect(attn.rotaryEmbedding(x, { layout: "bshd" }).data).toEqual(expected);
    const out = attn.buffer([2, 3, 5, 8]);
    expect(attn.rotaryEmbedding(turned, { out })).toBe(out);
    expect(out.data).toEqual(attn.rotaryEmbedding(turned).data);
    out.dispose();
    const half = { data: Uint16Array.of(0x3c00, 0, 0, 0), shape: [1, 4], dtype: "float16" } as const;
    expect(attn.rotaryEmbedding(half, { positions: 1 }).data).toEqual(Uint16Array.of(0x3853, 0, 0x3abb, 0));
    const flat = { data: turned.data.subarray(0, 3 * 5 * 8), shape: [3, 5, 8] };
    expect(attn.rotaryEmbedding(flat).data).toEqual(attn.rotaryEmbedding(turned).data.subarray(0, 120));
  });
});

describe("tables", () => {
  const cos = randomTensor([6, 4], 1);
  const sin = randomTensor([6, 4], 2); // the two need not fit together
  const by = (x: { data: Float32Array; shape: number[] }, row: (b: number, t: number) => number) => {
    const [, heads, length, dim] = x.shape as [number, number, number, number];
    return Float64Array.from(x.data, (value, i) => {
      const d = i % dim;
      if (d >= 8) return value;
      const [t, b] = [Math.floor(i / dim) % length, Math.floor(i / (dim * length * heads))];
      const at = row(b, t) * 4 + (d % 4);
      const [c, s] = [cos.data[at]!, sin.data[at]!];
      return d < 4 ? value * c - x.data[i + 4]! * s : value * c + x.data[i - 4]! * s;
    });
  };
  it("[positions, rotaryDim / 2], rows by position", () => {
    const x = randomTensor([2, 2, 3, 10], 3);
    expect(
      error(
        attn.rotaryEmbedding(x, { cos, sin }).data,
        by(x, (_, t) => t),
      ),
    ).toBeLessThan(1);
    const positions = [
      [5, 0, 2],
      [1, 1, 4],
    ];
    expect(
      error(
        attn.rotaryEmbedding(x, { cos, sin, positions }).data,
        by(x, (b, t) => positions[b]![t]!),
      ),
    ).toBeLessThan(1);
    expect(thrown(() => attn.rotaryEmbedding(x, { cos, sin, positions: 4 }))).toMatchObject({ code: "option", argument: "positions" });
  });
  it("[batch, seq, rotaryDim / 2], rows as they stand", () => {
    const x = randomTensor([2, 2, 3, 10], 4);
    const reshaped = (table: typeof cos) => ({ data: table.data, shape: [2, 3, 4] });
    expect(
      error(
        attn.rotaryEmbedding(x, { cos: reshaped(cos), sin: reshaped(sin) }).data,
        by(x, (b, t) => b * 3 + t),
      ),
    ).toBeLessThan(1);
    const shared = (table: typeof cos) => ({ data: table.data.subarray(0, 12), shape: [1, 3, 4] });
    expect(
      error(
        attn.rotaryEmbedding(x, { cos: shared(cos), sin: shared(sin) }).data,
        by(x, (_, t) => t),
      ),
    ).toBeLessThan(1);
  });
  it.each([
    [{ cos }, "option", "options.sin"],
    [{ cos, sin, base: 3 }, "option", "options"],
    [{ cos, sin: randomTensor([6, 3], 1) }, "shape", "options.sin"],
    [{ cos, sin, rotaryDim: 6 }, "shape", "options.cos"],
    [{ rotaryDim: 12 }, "option", "options.rotaryDim"],
    [{ rotaryDim: 5 }, "option", "options.rotaryDim"],
    [{ base: 0 }, "option", "options.base"],
    [{ positions: -1 }, "option", "options.positions"],
    [{ positions: [0, 1] }, "shape", "options.positions"],
    [{ interleave: true }, "option", "options.interleave"],
    [{ scaling: { type: "llama4", factor: 2 } }, "option", "options.scaling.type"],
    [{ scaling: { type: "yarn", factor: 2 } }, "option", "options.scaling.originalMaxPositions"],
    [{ scaling: { type: "linear", factor: 2, betaFast: 3 } }, "option", "options.scaling.betaFast"],
    [{ inverseFrequencies: [1, 2], rotaryDim: 8 }, "shape", "options.inverseFrequencies"],
  ] as const)("refuses %j", (options, code, argument) => {
    expect(thrown(() => attn.rotaryEmbedding(randomTensor([2, 2, 3, 10], 4), options as never))).toMatchObject({ code, argument });
  });
});

describe("scalings, by their published formulas", () => {
  const dim = 64;
  const pairs = Array.from({ length: dim / 2 }, (_, i) => i);
  const relative = (got: ArrayLike<number>, expected: number[]) => expect(error(got, expected, 0, 1e-12)).toBeLessThan(1);

  it("linear: positions divided by the factor", () => {
    const x = randomTensor([1, 1, 9, dim], 1);
    const got = attn.rotaryEmbedding(x, { scaling: { type: "linear", factor: 4 } });
    expect(error(got.data, rotate(x, { frequencies: plainFrequencies(dim), position: (_, t) => t / 4 }).data)).toBeLessThan(1);
  });

  it("NTK-aware: the slowest pair is stretched by the factor, the fastest stays", () => {
    const { inverseFrequencies } = rotaryFrequencies(dim, { scaling: { type: "ntk", factor: 8 } });
    relative(inverseFrequencies, plainFrequencies(dim, 10000 * 8 ** (dim / (dim - 2))));
    expect(inverseFrequencies[0]).toBe(1);
    expect(inverseFrequencies[31]! * 8).toBeCloseTo(plainFrequencies(dim)[31]!, 12);
  });

  it("dynamic NTK: nothing below the trained length, more the longer the text", () => {
    const scaling = { type: "dynamic", factor: 2, originalMaxPositions: 100 } as const;
    relative(rotaryFrequencies(dim, { scaling }, 100).inverseFrequencies, plainFrequencies(dim));
    // Hugging Face: base · (factor · length / max - (factor - 1)) ^ (d / (d - 2))
    relative(rotaryFrequencies(dim, { scaling }, 300).inverseFrequencies, plainFrequencies(dim, 10000 * 5 ** (dim / (dim - 2))));
    const x = randomTensor([1, 1, 300, dim], 2);
    const expected = rotate(x, { frequencies: plainFrequencies(dim, 10000 * 5 ** (dim / (dim - 2))) });
    expect(error(attn.rotaryEmbedding(x, { scaling }).data, expected.data)).toBeLessThan(1);
  });

  it("Llama 3: by wavelength", () => {
    const [factor, low, high, old, base] = [8, 1, 4, 8192, 500000];
    const scaling = { type: "llama3", factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalMaxPositions: old } as const;
    const expected = plainFrequencies(dim, base).map((f) => {
      const wavelength = (2 * Math.PI) / f;
      if (wavelength < old / high) return f;
      if (wavelength > old / low) return f / factor;
      const smooth = (old / wavelength - low) / (high - low);
      return ((1 - smooth) * f) / factor + smooth * f;
    });
    const { inverseFrequencies, attentionFactor } = rotaryFrequencies(dim, { base, scaling });
    relative(inverseFrequencies, expected);
    expect(attentionFactor).toBe(1);
    const changed = expected.map((f, i) => f / plainFrequencies(dim, base)[i]!);
    expect([changed[0], changed[31], changed.some((ratio) => ratio > 0.13 && ratio < 0.99)]).toEqual([1, 1 / 8, true]);
  });

  it("YaRN: a ramp between pairs, and a factor on cos and sin", () => {
    const [factor, old, base, fast, slow] = [16, 4096, 10000, 32, 1];
    const scaling = { type: "yarn", factor, originalMaxPositions: old } as const;
    // arXiv:2309.00071, equations 17 to 25, as their authors' code rounds the bounds.
    const pairOf = (turns: number) => (dim * Math.log(old / (turns * 2 * Math.PI))) / (2 * Math.log(base));
    const [from, to] = [Math.floor(pairOf(fast)), Math.ceil(pairOf(slow))];
    const expected = pairs.map((i) => {
      const f = base ** ((-2 * i) / dim);
      const keep = 1 - Math.min(1, Math.max(0, (i - from) / (to - from)));
      return (f / factor) * (1 - keep) + f * keep;
    });
    const { inverseFrequencies, attentionFactor } = rotaryFrequencies(dim, { scaling });
    relative(inverseFrequencies, expected);
    expect(attentionFactor).toBeCloseTo(0.1 * Math.log(factor) + 1, 12);
    const x = randomTensor([1, 2, 40, dim], 3);
    const turned = rotate(x, { frequencies: expected, factor: attentionFactor });
    expect(error(attn.rotaryEmbedding(x, { scaling }).data, turned.data)).toBeLessThan(1);
    const deepseek = rotaryFrequencies(dim, { scaling: { ...scaling, mscale: 1, mscaleAllDim: 1 } });
    expect(deepseek.attentionFactor).toBe(1);
    expect(rotaryFrequencies(dim, { scaling: { ...scaling, attentionFactor: 0.7 } }).attentionFactor).toBe(0.7);
  });
});
