/** attention-wasm/inline: the binary inside, nothing fetched. */
import { AttentionError, loadAttention as loadFile, tensor } from "attention-wasm";
import * as inline from "attention-wasm/inline";
import { describe, expect, it, vi } from "vitest";
import { randomTensor } from "./reference.js";

describe("inline", () => {
  it("T03: loads without fetch and without files, and computes the same", async () => {
    const fetch = vi.spyOn(globalThis, "fetch").mockRejectedValue(new Error("connect-src 'none'"));
    const [a, b] = await Promise.all([inline.loadAttention(), inline.loadAttention()]);
    expect(fetch).not.toHaveBeenCalled();
    fetch.mockRestore();
    expect(a).not.toBe(b);
    expect(a.selection).toMatchObject({ variant: "simd", threads: 1, reason: "the build inside attention-wasm/inline" });
    const x = randomTensor([3, 9, 16], 1);
    const { output } = (await loadFile({ variant: "simd" })).scaledDotProductAttention(x, x, x, { causal: true });
    expect(a.scaledDotProductAttention(x, x, x, { causal: true }).output).toEqual(output);
    a.dispose();
    expect(b.scaledDotProductAttention(x, x, x, { causal: true }).output).toEqual(output);
  });

  it("exports what the other entry does, the same things", async () => {
    expect(inline.AttentionError).toBe(AttentionError);
    expect(inline.tensor).toBe(tensor);
    await expect(inline.loadAttention({ wasm: "x" } as never)).rejects.toMatchObject({ code: "option" });
  });
});
