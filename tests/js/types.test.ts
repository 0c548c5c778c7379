/** What the types promise: checked by the compiler (npm run lint), and true when it runs. */
import { type Attention, type AttentionBuffer, loadAttention, type ReturnWeights, type Tensor, tensor } from "attention-wasm";
import { expect, it } from "vitest";

it("results that were asked for are there without a question mark", async () => {
  const attn: Attention = await loadAttention();
  const x = tensor([[1, 2]]);
  const { output, weights, lse, scores } = attn.scaledDotProductAttention(x, x, x, {
    returnWeights: true,
    returnLse: true,
    returnScores: "masked",
  });
  const all: Tensor[] = [output, weights, lse, scores];
  expect(all.map(({ shape }) => shape)).toEqual([[1, 2], [1, 1], [1], [1, 1]]);
  const mean: Tensor = attn.scaledDotProductAttention(x, x, x, { returnWeights: "mean" }).weights;
  const heads: Tensor = attn.scaledDotProductAttention(x, x, x, { returnWeights: { heads: [0] } }).weights;
  expect([mean.shape, heads.shape]).toEqual([
    [1, 1],
    [1, 1, 1],
  ]);
  // @ts-expect-error without the option it may be missing
  const missing: Tensor = attn.scaledDotProductAttention(x, x, x).weights;
  expect(missing).toBeUndefined();
  const maybe: ReturnWeights = Math.random() < 2;
  // @ts-expect-error who knows
  const unknown: Tensor = attn.scaledDotProductAttention(x, x, x, { returnWeights: maybe }).weights;
  expect(unknown).toBeDefined();
  // @ts-expect-error a misspelt option is an error, beside others, too
  expect(() => attn.scaledDotProductAttention(x, x, x, { casual: true, scale: 1, returnWeights: true })).toThrow("causal");
  // @ts-expect-error a float mask is an error
  expect(() => attn.scaledDotProductAttention(x, x, x, { mask: { data: new Float32Array(1), shape: [1] } })).toThrow("bias");
});

it("element types: float16 in, float16 out", async () => {
  const attn = await loadAttention();
  const x = tensor([[1, 2]]);
  const half = tensor(Uint16Array.of(0, 0), [1, 2], { dtype: "float16" });
  const bits: Uint16Array = attn.scaledDotProductAttention(half, x, x).output.data;
  const floats: Float32Array = attn.scaledDotProductAttention(x, half, half).output.data;
  const buffer: AttentionBuffer<"float16"> = attn.buffer([1, 2], { dtype: "float16" });
  const fromBuffer: Uint16Array = attn.scaledDotProductAttention(buffer, x, x).output.data;
  expect([bits, floats, fromBuffer].map((data) => data.length)).toEqual([2, 2, 2]);
  const mask: Tensor<Uint8Array> = tensor([[true]]);
  expect(attn.scaledDotProductAttention(x, x, x, { mask }).output.data).toEqual(x.data);
});
