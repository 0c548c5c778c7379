/** Drawn calls against attention from its definition in float64, on every binary that ships. */
import type { Attention, ReturnWeights, ScaledDotProductAttentionResult } from "attention-wasm";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { halfValue } from "../../onnx/half.mjs";
import { build, choices, swapped, type Call, type Choices } from "./draw.js";
import { Random } from "./random.js";
import { solve, type Solution } from "./reference.js";
import { loadAll, runs, seed } from "./settings.js";

const instances = await loadAll();
afterAll(() => {
  for (const { attn } of instances) attn.dispose();
});

const MINUTES = 60_000;
const EPSILON16 = 2 ** -11;

describe("scaledDotProductAttention equals attention in float64", () => {
  test(`${runs} drawn calls, seed ${seed}`, { timeout: 10 * MINUTES }, () => {
    let rowsWithoutKeys = 0;
    fc.assert(
      fc.property(choices, (chosen) => {
        const call = build(chosen);
        const solution = solve(call.problem);
        rowsWithoutKeys += solution.lse.reduce((count, lse) => count + (lse === Number.NEGATIVE_INFINITY ? 1 : 0), 0);
        for (const { name, attn } of instances) check(name, attn, chosen, call, solution);
      }),
      { numRuns: runs },
    );
    if (runs >= 100) expect(rowsWithoutKeys).toBeGreaterThan(0); // the drawing itself would be at fault
  });
});

function check(name: string, attn: Attention, chosen: Choices, call: Call, solution: Solution): void {
  const { problem: p, query, key, value, options } = call;
  const plain = attn.scaledDotProductAttention(query, key, value, options);
  compareOutput(name, chosen, call, plain, solution);

  // What is returned beside the output, of one kind per call.
  const random = new Random(chosen.seed + 1);
  const heads = Array.from({ length: p.heads }, (_, h) => h).filter(() => random.chance(0.6));
  const kinds: ReturnWeights[] = [true, "mean", heads.length === 0 ? true : { heads: heads.reverse() }];
  const returnWeights = kinds[random.integer(0, 2)]!;
  const stages = ["scaled", "softcapped", "masked"] as const;
  const returnScores = stages[random.integer(0, 2)]!;
  const full = attn.scaledDotProductAttention(query, key, value, { ...options, returnWeights, returnScores, returnLse: true });
  if (!hasSameBits(full.output.data, plain.output.data)) throw new Error(`${name}: another output when weights are returned`);

  const rows = p.batch * p.heads * p.queries;
  for (let row = 0; row < rows; row++) {
    const lse = solution.lse[row]!;
    close(full.lse!.data[row]!, lse, solution.slack[row]! * Math.max(1, Math.abs(lse)), () => `${name}: lse of row ${row}`);
    for (let s = 0; s < p.keys; s++) {
      const at = row * p.keys + s;
      // A raw score of a hidden key is made of what is there, which may be poison.
      const slack = solution.scoreSlack[at]! * 4 + 1e-6;
      close(full.scores!.data[at]!, solution[returnScores][at]!, slack, () => `${name}: ${returnScores} score ${at}`);
    }
  }
  compareWeights(name, p, solution, returnWeights, full.weights!.data);
}

function compareOutput(
  name: string,
  chosen: Choices,
  call: Call,
  result: ScaledDotProductAttentionResult<unknown>,
  solution: Solution,
): void {
  const { problem: p, isPositionsFirst } = call;
  const { data } = result.output as { data: Float32Array | Uint16Array };
  const isHalf = chosen.dtypes === "float16";
  expect(data).toBeInstanceOf(isHalf ? Uint16Array : Float32Array);
  const numbers = isHalf ? Float32Array.from(data, halfValue) : (data as Float32Array);
  expect(numbers.length).toBe(solution.output.length);
  // Back to heads first: the swap of swapped sizes.
  const output = isPositionsFirst ? swapped(numbers, p.batch, p.queries, p.heads, p.valueWidth) : numbers;
  for (let i = 0; i < output.length; i++) {
    const row = Math.floor(i / p.valueWidth);
    const expected = solution.output[i]!;
    const rounding = isHalf ? Math.abs(expected) * EPSILON16 + 2 ** -24 : 0;
    close(output[i]!, expected, solution.slack[row]! * solution.valueSize[row]! + rounding, () => `${name}: output ${i}`);
  }
}

function compareWeights(name: string, p: Call["problem"], solution: Solution, wanted: ReturnWeights, actual: Float32Array): void {
  const heads = typeof wanted === "object" ? wanted.heads : Array.from({ length: p.heads }, (_, h) => h);
  const matrix = p.queries * p.keys;
  const of = (b: number, h: number, i: number) => (b * p.heads + h) * matrix + i;
  if (wanted === "mean") {
    for (let b = 0; b < p.batch; b++) {
      for (let i = 0; i < matrix; i++) {
        let mean = 0;
        let slack = 0;
        for (const h of heads) {
          mean += solution.weights[of(b, h, i)]! / p.heads;
          slack = Math.max(slack, solution.slack[Math.floor(of(b, h, i) / p.keys)]!);
        }
        close(actual[b * matrix + i]!, mean, slack, () => `${name}: mean weight ${b}, ${i}`);
      }
    }
    return;
  }
  for (let b = 0; b < p.batch; b++) {
    heads.forEach((h, position) => {
      for (let i = 0; i < matrix; i++) {
        const at = of(b, h, i);
        const weight = actual[(b * heads.length + position) * matrix + i]!;
        const expected = solution.weights[at]!;
        if (solution.masked[at] === Number.NEGATIVE_INFINITY && weight !== 0) throw new Error(`${name}: hidden weight ${at} is ${weight}`);
        close(weight, expected, solution.slack[Math.floor(at / p.keys)]! * Math.max(expected, 1e-3), () => `${name}: weight ${at}`);
      }
    });
  }
}

/** Element by element, and NaN equals itself; vitest's own comparison takes seconds for arrays of this size. */
function hasSameBits(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}

/** `what` names the place; it is called only where something is wrong, since messages for millions of elements would take longer than the comparison. */
function close(actual: number, expected: number, slack: number, what: () => string): void {
  if (actual === expected || Math.abs(actual - expected) <= slack || (Number.isNaN(expected) && Number.isNaN(actual))) return;
  throw new Error(`${what()}: ${actual}, expected ${expected} within ${slack}`);
}
