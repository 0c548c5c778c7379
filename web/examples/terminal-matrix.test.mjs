import { expect, test } from "vitest";
import { drawMatrix } from "./terminal-matrix.mjs";

const words = "the animal did not cross the street because it was too tired".split(" ");
/** Every row the same, rising from left to right. @param {number} seqLen */
const rising = (seqLen) => Float32Array.from({ length: seqLen * seqLen }, (_, i) => (2 * ((i % seqLen) + 1)) / (seqLen * (seqLen + 1)));

test.each([40, 60, 80, 120, 200])("fits a terminal of %i characters, whatever the number of words", (width) => {
  for (const seqLen of [1, 2, 12, 40, 100]) {
    const tokens = Array.from({ length: seqLen }, (_, i) => words[i % words.length]);
    const text = drawMatrix(rising(seqLen), tokens, { width, colour: false, causal: false });
    const rows = text.split("\n").slice(0, -2); // the legend is a sentence and may wrap
    expect(Math.max(...rows.map((line) => [...line].length))).toBeLessThanOrEqual(width);
    expect(text.match(/ 1\.000000$/gm)?.length).toBe(seqLen);
  }
});

test("says the numbers, and darkens with them", () => {
  const text = drawMatrix(Float32Array.of(0, 1, 0.75, 0.25), ["a", "b"], { width: 80, colour: false, causal: false });
  expect(text.split("\n").slice(1, 3)).toEqual(["a     0   100█  1.000000", "b    75▓   25░  1.000000"]);
});

test("a hidden key is a dot and no 0, and colours come only when asked for", () => {
  const weights = Float32Array.of(1, 0, 0.5, 0.5);
  const plain = drawMatrix(weights, ["a", "b"], { width: 80, colour: false, causal: true });
  expect(plain.split("\n")[1]).toContain("·");
  expect(plain).not.toContain("\u001b");
  expect(drawMatrix(weights, ["a", "b"], { width: 80, colour: true, causal: true })).toContain("\u001b[48;5;");
});

test("wide characters take two columns", () => {
  const lines = drawMatrix(Float32Array.of(1, 0, 0, 1), ["猫", "ab"], { width: 80, colour: false, causal: false }).split("\n");
  // Both labels are two columns wide, so no blank is added to either.
  expect(lines[1].startsWith("猫 ")).toBe(true);
  expect(lines[2].startsWith("ab ")).toBe(true);
});
