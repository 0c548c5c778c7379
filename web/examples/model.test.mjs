import { expect, test } from "vitest";
import { readWordTable } from "./files.mjs";
import { largestDifference, meanOfHeads, rowFacts } from "./matrix.mjs";
import { describeHead, describeHeads, embed, kEmbedDim, kHeadCounts, weightsFor } from "./model.mjs";
import { selfAttentionFloat64 } from "./reference.mjs";
import { tokenize } from "./tokenize.mjs";

const table = await readWordTable();

/** @param {string} sentence @param {number} numHeads @param {boolean} [causal] */
function attend(sentence, numHeads, causal = false) {
  const tokens = tokenize(sentence, table);
  const x = embed(tokens, table);
  const result = selfAttentionFloat64(x, weightsFor(numHeads, table), { numHeads, embedDim: kEmbedDim, causal });
  const data = Float32Array.from(result.weights);
  return { x, ...result, seqLen: tokens.length, weights: { data, shape: [numHeads, tokens.length, tokens.length] } };
}

test.each(kHeadCounts)("with %i heads, each does what is said of it", (numHeads) => {
  const { weights, seqLen } = attend("the king and the queen live in a castle with cats and dogs, far from the river", numHeads);
  for (let head = 0; head < numHeads; head++) {
    const one = meanOfHeads(weights, [head]);
    const shift = new Map([
      ["looks at the word before", -1],
      ["looks at the word after", 1],
    ]).get(describeHead(head, numHeads));
    for (let row = 0; row < seqLen; row++) {
      expect(rowFacts(one, row).sum).toBeCloseTo(1, 6);
      if (shift !== undefined && row + shift >= 0 && row + shift < seqLen) {
        expect(rowFacts(one, row).column).toBe(row + shift);
        expect(rowFacts(one, row).largest).toBeGreaterThan(0.5);
      }
    }
    if (shift === undefined) {
      // "cats" (10) and "dogs" (12) are the pair that is used most alike.
      const looksAt = [one[10 * seqLen + 12], one[12 * seqLen + 10]];
      expect(Math.max(...looksAt), `head ${head + 1}`).toBeGreaterThan(1.5 / seqLen);
    }
  }
});

test("one word alone comes out as it went in: wo undoes wv", () => {
  const { x, output } = attend("cats", 4);
  expect(largestDifference(x, output)).toBeLessThan(1e-6);
});

test("nothing is random: the same call gives the same bits", () => {
  const other = { ...table };
  for (const name of /** @type {const} */ (["wq", "wk", "wv", "wo", "bq", "bk"])) {
    expect(weightsFor(4, other)[name]).toEqual(weightsFor(4, table)[name]);
  }
  const [a, b] = [0, 1].map(() => embed(tokenize("zorgblatt", table), table));
  expect(a).toEqual(b);
});

test("causal: a later word changes nothing before it", () => {
  const before = attend("cats like dogs", 4, true);
  const after = attend("cats like dogs and rivers", 4, true);
  expect(largestDifference(before.output, after.output.subarray(0, before.output.length))).toBeLessThan(1e-12);
});

test("says all heads in one sentence, and refuses other numbers of heads", () => {
  expect(describeHeads(1)).toBe("head 1 looks for other words used alike");
  expect(describeHeads(8)).toBe(
    "head 1 looks at the word before; head 2 looks at the word after; heads 3 to 8 look for other words used alike",
  );
  expect(() => weightsFor(3, table)).toThrow("heads: expected one of 1, 2, 4, 8, got 3");
});
