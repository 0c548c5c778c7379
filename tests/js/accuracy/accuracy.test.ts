/** No more than twice the error of plain float32 loops, and an exponential that is right over its whole range. The numbers themselves: tests/ACCURACY.md. */
import type { Attention } from "attention-wasm";
import { afterAll, describe, expect, test } from "vitest";
import { allowRelaxedSimd, loadBinary, shippedBinaries } from "../../onnx/instances.mjs";
import { cases, computePlainly, computeWith, errors, exponentialErrors, makeInputs } from "./measure.mjs";

allowRelaxedSimd();
const instances: { name: string; attn: Attention }[] = await Promise.all(
  shippedBinaries().map(async (name) => ({ name, attn: await loadBinary(name) })),
);
afterAll(() => {
  for (const { attn } of instances) attn.dispose();
});

describe("the error against float64 is at most twice that of plain float32 loops", () => {
  test.each(cases)("$kind, $keys keys, scores up to $scoreSize", (which) => {
    const inputs = makeInputs(which);
    const exact = computePlainly(which, inputs, (x) => x);
    const plain = errors(computePlainly(which, inputs, Math.fround), exact);
    for (const { name, attn } of instances) {
      const own = errors(computeWith(attn, which, inputs), exact);
      expect(own.largest, `${name}: largest error`).toBeLessThanOrEqual(2 * plain.largest);
      expect(own.mean, `${name}: mean error`).toBeLessThanOrEqual(2 * plain.mean);
    }
  });
});

test("N28: the exponential from -100 to 0", () => {
  for (const { name, attn } of instances) {
    const { relative, absolute } = exponentialErrors(attn);
    expect(relative, `${name}: relative, above -87`).toBeLessThan(5e-7);
    expect(absolute, `${name}: absolute, below -87`).toBeLessThan(1e-37);
  }
});
