/**
 * Whole transformer blocks from safetensors files in each family's names: the layer does the attention, everything is compared with an independent float64
 * calculation of the block.
 */
import { type Attention, fromSafetensors, loadAttention } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { add, gelu, layerNorm, map, rmsNormRows, type Rows, silu } from "./float64-block.js";
import { plainFrequencies, project, referenceLayer } from "./layer-reference.js";
import { drawWeights, families, type Numbers } from "./layer-weights.js";
import { error, randomTensor } from "./reference.js";
import { safetensorsBytes } from "./safetensors-file.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

const EMBED = 48;
const HEADS = 4;
const INNER = 96;
const LENGTH = 23;
const size = 1 / Math.sqrt(EMBED);

/** What of a file is not attention. */
const around = {
  "norm1.weight": map(randomTensor([EMBED], 31, 0.2), (value) => 1 + value),
  "norm1.bias": randomTensor([EMBED], 32, 0.2),
  "norm2.weight": map(randomTensor([EMBED], 33, 0.2), (value) => 1 + value),
  "norm2.bias": randomTensor([EMBED], 34, 0.2),
  "up.weight": randomTensor([INNER, EMBED], 35, size),
  "up.bias": randomTensor([INNER], 36, 0.1),
  "gate.weight": randomTensor([INNER, EMBED], 37, size),
  "down.weight": randomTensor([EMBED, INNER], 38, size),
  "down.bias": randomTensor([EMBED], 39, 0.1),
};
const float32 = (x: Numbers | Rows): Numbers => ({ data: Float32Array.from(x.data), shape: x.shape });

/** The block in a file: attention under the names of a family, and the rest. */
function fileOf(title: string, kvHeads: number): { bytes: Uint8Array; weights: ReturnType<typeof drawWeights> } {
  const weights = drawWeights(EMBED, HEADS, kvHeads, EMBED / HEADS, 50);
  const named = Object.entries(families[title]!.name(weights, HEADS, kvHeads)).map(
    ([name, value]) => [`block.0.attention.${name}`, value] as const,
  );
  const rest = Object.entries(around).map(([name, value]) => [`block.0.${name}`, float32(value)] as const);
  return { bytes: safetensorsBytes(Object.fromEntries([...named, ...rest]), () => "F32", { format: "pt" }), weights };
}

for (const [title, { isFused }] of Object.entries(families)) {
  describe(`${title}'s names`, () => {
    it("an encoder block: post-norm, padding, GELU", () => {
      const kvHeads = HEADS;
      const { bytes, weights } = fileOf(title, kvHeads);
      const x = randomTensor([2, LENGTH, EMBED], 60);
      const keyLengths = [LENGTH, 15];
      const block = (attention: (x: Numbers) => Numbers | Rows, of: (name: string) => Numbers | Rows): Rows => {
        const mid = layerNorm(add(x, attention(x)), of("norm1.weight"), of("norm1.bias"), 1e-12);
        const inner = map(project(mid, of("up.weight"), of("up.bias")), gelu);
        return layerNorm(add(mid, project(inner, of("down.weight"), of("down.bias"))), of("norm2.weight"), of("norm2.bias"), 1e-12);
      };
      const rest = fromSafetensors(bytes, { prefix: "block.0." });
      using layer = attn.createMultiHeadAttention({
        embedDim: EMBED,
        numHeads: HEADS,
        weights: fromSafetensors(bytes),
        prefix: "block.0.attention.",
      });
      const got = block(
        (input) => layer.forward(input as never, { keyLengths }).output as Numbers,
        (name) => rest[name] as Numbers,
      );
      const expected = block(
        (input) => referenceLayer(input, weights, { numHeads: HEADS, keyLengths }).output,
        (name) => float32(around[name as keyof typeof around]),
      );
      expect(error(got.data, expected.data, 5e-6)).toBeLessThan(1);
    });

    it("a decoder block: pre-norm, rotary positions, SwiGLU; token by token with a cache", () => {
      const kvHeads = isFused ? HEADS : 2;
      const { bytes, weights } = fileOf(title, kvHeads);
      const x = randomTensor([1, LENGTH, EMBED], 61);
      const rest = fromSafetensors(bytes, { prefix: "block.0." });
      const block = (input: Numbers, attention: (x: Rows) => Numbers | Rows, of: (name: string) => Numbers | Rows): Rows => {
        const mid = add(input, attention(rmsNormRows(input, of("norm1.weight"), 1e-6)));
        const normed = rmsNormRows(mid, of("norm2.weight"), 1e-6);
        const gate = map(project(normed, of("gate.weight")), silu);
        const inner = project(normed, of("up.weight"), of("up.bias"));
        return add(
          mid,
          project(
            map(inner, (value, i) => value * gate.data[i]!),
            of("down.weight"),
            of("down.bias"),
          ),
        );
      };
      const expected = block(
        x,
        (input) =>
          referenceLayer(input, weights, {
            numHeads: HEADS,
            numKvHeads: kvHeads,
            causal: true,
            rotary: { frequencies: plainFrequencies(EMBED / HEADS, 500) },
          }).output,
        (name) => float32(around[name as keyof typeof around]),
      );
      using layer = attn.createMultiHeadAttention({
        embedDim: EMBED,
        numHeads: HEADS,
        weights: fromSafetensors(bytes),
        prefix: "block.0.attention.",
        rotary: { base: 500 },
      });
      const own = (name: string) => rest[name] as Numbers;
      const whole = block(x, (input) => layer.forward(float32(input) as never, { causal: true }).output as Numbers, own);
      expect(error(whole.data, expected.data, 5e-6)).toBeLessThan(1);

      using cache = attn.createKvCache({ numKvHeads: kvHeads, headDim: EMBED / HEADS, capacity: LENGTH });
      for (let t = 0, count = 7; t < LENGTH; t += count, count = 1) {
        const step = { data: x.data.subarray(t * EMBED, (t + count) * EMBED), shape: [1, count, EMBED] };
        const got = block(step, (input) => layer.forward(float32(input) as never, { causal: true, cache }).output as Numbers, own);
        expect(error(got.data, expected.data.subarray(t * EMBED, (t + count) * EMBED), 5e-6)).toBeLessThan(1);
      }
    });
  });
}
