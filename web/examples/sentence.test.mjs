/** What `npm start` runs, as a program of its own: what it prints, and its exit code. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const kScript = fileURLToPath(new URL("sentence.mjs", import.meta.url));

/** @param {string[]} words */
function run(...words) {
  const { NO_COLOR: _, FORCE_COLOR: __, ...env } = process.env;
  const { stdout, stderr, status } = spawnSync(process.execPath, [kScript, ...words], { encoding: "utf8", env: { ...env, COLUMNS: "80" } });
  return { stdout, stderr, status };
}

test("prints the seven steps, the matrix with rows that sum to 1, and the comparison with float64", () => {
  const { stdout, stderr, status } = run("the animal did not cross the street because it was too tired");
  expect(stderr).toBe("");
  expect(status).toBe(0);
  for (let step = 1; step <= 7; step++) expect(stdout).toMatch(new RegExp(`^${step} .*\\[`, "m"));
  const rows = [...stdout.matchAll(/^(\S+) .* (\d\.\d{6})$/gm)];
  expect(rows.map((row) => row[1]).join(" ")).toBe("the animal did not cross the street because it was too tired");
  for (const row of rows) expect(Math.abs(Number(row[2]) - 1)).toBeLessThanOrEqual(1e-6);
  const [, weights, output, sums] = /differ by at most (\S+), outputs by (\S+) .* row sums differ from 1 by (\S+)/.exec(stdout) ?? [];
  expect(Number(weights)).toBeLessThan(2e-6);
  expect(Number(output)).toBeLessThan(2e-6);
  expect(Number(sums)).toBeLessThan(1e-6);
  expect(stdout).not.toContain("\u001b");
});

test("names words that it does not know", () => {
  const { stdout, status } = run("a zorgblatt isn't here");
  expect(status).toBe(0);
  expect(stdout).toContain('"a" → "an"');
  expect(stdout).toContain('"n\'t" → "not"');
  expect(stdout).toMatch(/Unknown.*"zorgblatt"/);
});

test("takes options, and prints the same twice", () => {
  const [first, second] = [0, 1].map(() =>
    run("--causal", "--heads", "8", "--show", "all", "cats and dogs").stdout.replace(/[\d.]+ ms/, ""),
  );
  expect(first).toBe(second);
  expect(first.match(/head \d of 8, .*causal/g)?.length).toBe(8);
  expect(first).toMatch(/^3? +Masked scores/m);
  expect(run("--help").stdout).toContain("npm start --");
});

test.each([
  ["a wrong number of heads", ["--heads", "3"], 'sentence: --heads: expected one of 1, 2, 4, 8, got "3"'],
  ["a head that is not there", ["--show", "5"], 'sentence: --show: expected mean, all, or a head from 1 to 4, got "5"'],
  ["an unknown option", ["--nonsense"], "sentence: Unknown option '--nonsense'"],
  ["no words", ["\u0007"], "sentence: There is no word in the sentence"],
  ["too many words", ["word ".repeat(257)], "sentence: The sentence has 257 words and signs; at most 256 can be shown."],
])("%s ends with a sentence and exit code 1", (_, words, sentence) => {
  const { stdout, stderr, status } = run(...words);
  expect(status).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).toContain(sentence);
});
