import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readWordTable } from "./files.mjs";
import { float16ToNumber, nearestWords, parseWordTable, vectorOf } from "./word-table.mjs";

const table = await readWordTable();

test("has at least 5,000 words of 100 numbers, everyday words and punctuation among them", () => {
  expect(table.words.length).toBeGreaterThanOrEqual(5000);
  expect(new Set(table.words).size).toBe(table.words.length);
  for (const word of "animal cross street tired because too river bank the monkey banana . , ? ! ; :".split(" ")) {
    expect(vectorOf(table, word)?.length, word).toBe(100);
  }
  expect(vectorOf(table, "zorgblatt")).toBeUndefined();
  expect(table.vectors.every(Number.isFinite)).toBe(true);
});

test("belongs together, row by row: words used alike are near each other", () => {
  for (const [word, near] of [
    ["cats", "dogs"],
    ["queen", "king"],
    ["rain", "storm"],
    ["tired", "sick"],
    ["?", "!"],
  ]) {
    expect(nearestWords(table, vectorOf(table, word) ?? [], 20), word).toContain(near);
    expect(nearestWords(table, vectorOf(table, word) ?? [], 1)).toEqual([word]);
  }
});

test("reads float16 as IEEE 754 says", () => {
  for (const [bits, value] of [
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3555, 0.333251953125],
  ]) {
    expect(float16ToNumber(bits)).toBe(value);
  }
  expect(float16ToNumber(0x8000)).toBe(-0);
  expect(float16ToNumber(0x7c00)).toBe(Number.POSITIVE_INFINITY);
  expect(float16ToNumber(0x7e00)).toBeNaN();
});

test("a cut-off file is named with what was expected", () => {
  const text = readFileSync(new URL("words-100d.txt", import.meta.url), "utf8");
  expect(() => parseWordTable(text, new ArrayBuffer(1000))).toThrow(
    "expected 1120400 bytes for 5602 words × 100 float16 numbers, got 1000",
  );
  expect(() => parseWordTable("", new ArrayBuffer(0))).toThrow("expected");
});
