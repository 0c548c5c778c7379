/** Drawn calls of ONNX's Attention: against the reference in float64 always, and against ONNX Runtime where it does the same. */
import { attention } from "attention-wasm/onnx";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { swapped } from "./draw.js";
import { buildOnnx, onnxChoices, type OnnxArray, type OnnxCall, type OnnxChoices } from "./draw-onnx.js";
import { runPeer } from "./onnxruntime.js";
import { hiddenScore, refusals, refusesShortMasks, wrongResults } from "./peer-faults.js";
import { solve, type Solution } from "./reference.js";
import { loadAll, runs, seed } from "./settings.js";

const instances = await loadAll();
afterAll(() => {
  for (const { attn } of instances) attn.dispose();
});
const MINUTES = 60_000;

describe("ONNX's Attention", () => {
  test(`${runs} drawn calls equal the reference and ONNX Runtime, seed ${seed}`, { timeout: 10 * MINUTES }, async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(onnxChoices, async (chosen) => {
        const call = buildOnnx(chosen);
        const solution = solve(call.problem);
        const hasPeer = !refusals.some((fault) => fault.applies(chosen)) && !(refusesShortMasks && hasShortMask(call));
        const peer = hasPeer && !wrongResults.some((fault) => fault.applies(chosen)) ? await runPeer(call) : undefined;
        if (peer !== undefined) compared++;
        for (const { name, attn } of instances) {
          const { Y, present_key, present_value, qk_matmul_output } = attention(attn, call.inputs as never, call.attributes);
          const outputs = { Y, present_key, present_value, qk_matmul_output } as Record<string, OnnxArray>;
          compare(`${name} and the reference`, chosen, call, outputs, expectedOutputs(chosen, call, solution), solution);
          if (peer !== undefined) compare(`${name} and ONNX Runtime`, chosen, call, outputs, peer, solution);
        }
      }),
      { numRuns: runs },
    );
    console.log(`${compared} of ${runs} calls were compared with ONNX Runtime, too`);
    if (runs >= 100) expect(compared).toBeGreaterThan(runs / 3); // else the drawing is at fault
  });

  test.each(wrongResults)("a fault of the peer is still there: $what", async ({ applies }) => {
    const kind = onnxChoices.filter(
      (c) => applies(c) && !refusals.some((fault) => fault.applies(c)) && c.newKeys > 3 && c.mask === "none" && c.mode === 0,
    );
    const [chosen] = fc.sample(kind, { numRuns: 1, seed: 1 });
    const call = buildOnnx(chosen!);
    const { Y } = await runPeer(call);
    const { Y: own } = attention(instances[0]!.attn, call.inputs as never, call.attributes, { outputs: ["Y"] }) as unknown as {
      Y: OnnxArray;
    };
    expect(Array.from(Y!.data).some((y, i) => Math.abs(y - (own.data[i] as number)) > 1e-3)).toBe(true);
  });

  test("ONNX Runtime refuses what peer-faults.ts says", async () => {
    for (const { applies } of refusals) {
      const [chosen] = fc.sample(onnxChoices.filter(applies), { numRuns: 1, seed: 1 });
      await expect(runPeer(buildOnnx(chosen!))).rejects.toThrow();
    }
  });
});

function hasShortMask({ inputs, problem }: OnnxCall): boolean {
  return inputs.attn_mask !== undefined && inputs.attn_mask.shape.at(-1)! < problem.keys;
}

function expectedOutputs(
  c: OnnxChoices,
  { problem: p }: OnnxCall,
  solution: Solution,
): Record<string, { data: ArrayLike<number>; shape: number[] }> {
  const heads = { data: solution.output, shape: [p.batch, p.heads, p.queries, p.valueWidth] };
  const positions = {
    data: swapped(Float32Array.from(solution.output), p.batch, p.heads, p.queries, p.valueWidth),
    shape: [p.batch, p.queries, p.heads * p.valueWidth],
  };
  return {
    Y: c.rank === 4 ? heads : positions,
    present_key: { data: p.key, shape: [p.batch, p.kvHeads, p.keys, p.width] },
    present_value: { data: p.value, shape: [p.batch, p.kvHeads, p.keys, p.valueWidth] },
    qk_matmul_output: {
      data: [solution.scaled, solution.softcapped, solution.masked, solution.weights][c.mode]!,
      shape: [p.batch, p.heads, p.queries, p.keys],
    },
  };
}

function compare(
  who: string,
  c: OnnxChoices,
  { problem: p }: OnnxCall,
  actual: Record<string, OnnxArray>,
  expected: Record<string, { data: ArrayLike<number>; shape: number[] }>,
  solution: Solution,
): void {
  for (const [name, { data, shape }] of Object.entries(expected)) {
    const own = actual[name]!;
    if (`${own.shape}` !== `${shape}`) throw new Error(`${who}: ${name} has shape [${own.shape}], expected [${shape}]`);
    for (let i = 0; i < data.length; i++) {
      const a = own.data[i] as number;
      const b = name === "qk_matmul_output" && c.mode === 2 ? hiddenScore(data[i]!) : data[i]!;
      const slack = name === "Y" ? slackOfY(c, p, solution, i) : name === "qk_matmul_output" ? slackOfScore(c, p, solution, i) : 0;
      if (a !== b && !(Math.abs(a - b) <= slack)) throw new Error(`${who}: ${name} at ${i} is ${a}, expected ${b} within ${slack}`);
    }
  }
}

// Two float32 computations may each be off by the slack.
function slackOfY(c: OnnxChoices, p: OnnxCall["problem"], solution: Solution, i: number): number {
  const position = Math.floor(i / p.valueWidth); // (b, h, t), or (b, t, h) for inputs of rank 3
  const b = Math.floor(position / (p.heads * p.queries));
  const rest = position % (p.heads * p.queries);
  const [h, t] = c.rank === 4 ? [Math.floor(rest / p.queries), rest % p.queries] : [rest % p.heads, Math.floor(rest / p.heads)];
  const row = (b * p.heads + h) * p.queries + t;
  return 2 * solution.slack[row]! * solution.valueSize[row]! + 1e-6;
}

function slackOfScore(c: OnnxChoices, p: OnnxCall["problem"], solution: Solution, i: number): number {
  if (c.mode === 3) return 2 * solution.slack[Math.floor(i / p.keys)]!;
  return 4 * solution.scoreSlack[i]! + 2e-6;
}
