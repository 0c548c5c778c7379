/** Decoding for long: thousands of steps equal one pass, and leave the memory where it was. */
import { type Attention, loadAttention } from "attention-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { drawWeights } from "./layer-weights.js";
import { error, randomTensor } from "./reference.js";

let attn: Attention;
beforeAll(async () => {
  attn = await loadAttention();
});

describe("decoding for long", () => {
  it("4,096 steps equal one causal pass, to 2e-6", { timeout: 120_000 }, () => {
    const [embed, length] = [32, 4096];
    const weights = drawWeights(embed, 4, 2, 8);
    using layer = attn.createMultiHeadAttention({ numHeads: 4, weights, rotary: {} });
    using cache = attn.createKvCache({ numKvHeads: 2, headDim: 8, capacity: length });
    const x = randomTensor([length, embed], 1);
    const whole = layer.forward(x, { causal: true }).output.data;
    const steps = new Float32Array(length * embed);
    for (let t = 0; t < length; t++) {
      const step = { data: x.data.subarray(t * embed, (t + 1) * embed), shape: [1, embed] };
      steps.set(layer.forward(step, { causal: true, cache }).output.data, t * embed);
    }
    expect(error(steps, whole, 2e-6, 0)).toBeLessThan(1);
  });

  it("100,000 steps leave the memory where it was", { timeout: 120_000 }, () => {
    const weights = drawWeights(16, 2, 1, 8);
    using layer = attn.createMultiHeadAttention({ numHeads: 2, weights, rotary: {} });
    using cache = attn.createKvCache({ numKvHeads: 1, headDim: 8, window: 32 });
    const x = randomTensor([1, 16], 1);
    for (let t = 0; t < 1000; t++) layer.forward(x, { cache });
    const { bytesInUse, totalBytes } = attn.memory;
    for (let t = 0; t < 100_000; t++) layer.forward(x, { cache });
    expect(attn.memory).toMatchObject({ bytesInUse, totalBytes });
    expect(cache.positions[0]).toBe(101_000);
  });
});
