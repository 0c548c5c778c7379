/**
 * A guard against slowdowns that no clock decides: what the shipped binaries consist of. Timings differ from machine to machine, instructions do not.
 *
 * What counts as a hot loop, found in the code by what it holds and not by names, which are not shipped:
 * - matrix loop: innermost; at least 2 v128.load and 4 v128.load32_splat for 8 multiply-adds of vectors (q·k, weights·v, projections);
 * - reading loop: innermost; at least 4 v128.load and 4 multiply-adds, at most 2 splats (decoding);
 * - exponential loop: innermost; puts exponents together by i32x4.shl, beside at least 8 multiplications, and stores vectors (softmax).
 *
 * A scalar exponential is a call, directly or through others, to a function of floats alone that multiplies more than four times (expf, tanhf, logf;
 * none of them has an instruction), from a loop of a function that has hot loops; or double arithmetic in a hot loop itself.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadAttention, type Tensor } from "attention-wasm";
import { describe, expect, test } from "vitest";
import { binaryHashes } from "../bench/js/machine.mjs";
import { repository } from "./consumer";
import { allLoops, innermost, kF32, kF64, type Loop, op, readFunctions, times, type WasmFunction } from "./wasm-loops";

const folder = join(repository, "build/installed/node_modules/attention-wasm/dist");
const files = ["attention.simd.wasm", "attention.relaxed.wasm", "attention.simd-threads.wasm", "attention.relaxed-threads.wasm"];

const multiplyAdds = (loop: Loop) =>
  Math.min(times(loop, op.mul), times(loop, op.add)) + times(loop, op.relaxedMadd) + times(loop, op.relaxedNmadd);
const isMatrixLoop = (loop: Loop) => times(loop, op.load) >= 2 && times(loop, op.splat) >= 4 && multiplyAdds(loop) >= 8;
const isReadingLoop = (loop: Loop) => times(loop, op.load) >= 4 && times(loop, op.splat) <= 2 && multiplyAdds(loop) >= 4;
const isExponentialLoop = (loop: Loop) =>
  times(loop, op.shiftLeft) >= 1 &&
  times(loop, op.store) >= 1 &&
  times(loop, op.mul) + times(loop, op.relaxedMadd) + times(loop, op.relaxedNmadd) >= 8;
const isHot = (loop: Loop) => isMatrixLoop(loop) || isReadingLoop(loop) || isExponentialLoop(loop);

const total = ({ body }: WasmFunction, wanted: (opcode: number) => boolean) =>
  [body, ...allLoops(body)].reduce((sum, { count }) => sum + [...count].reduce((n, [code, k]) => n + (wanted(code) ? k : 0), 0), 0);

const isDoubleArithmetic = (opcode: number) =>
  (opcode >= op.f64First && opcode <= op.f64Last) || opcode === op.promote || opcode === op.demote;

function isScalarMath(f: WasmFunction): boolean {
  const floatsOnly = [...f.params, ...f.results].every((type) => type === kF32 || type === kF64);
  return floatsOnly && f.results.length === 1 && total(f, (code) => code === op.f32Mul || code === op.f64Mul) > 4;
}

/** Functions that may run in a turn of a loop of `f`. */
function calledFromLoops(f: WasmFunction, byIndex: ReadonlyMap<number, WasmFunction>): Set<number> {
  const found = new Set<number>();
  const visit = (index: number) => {
    const callee = byIndex.get(index);
    if (callee === undefined || found.has(index)) return;
    found.add(index);
    for (const { calls } of [callee.body, ...allLoops(callee.body)]) calls.forEach(visit);
  };
  for (const { calls } of allLoops(f.body)) calls.forEach(visit);
  return found;
}

describe.each(files)("%s", (file) => {
  const functions = readFunctions(readFileSync(join(folder, file)));
  const byIndex = new Map(functions.map((f) => [f.index, f]));
  const hot = functions.filter((f) => innermost(f).some(isHot));
  const loops = hot.flatMap(innermost).filter(isHot);

  test("has vector loops for products, for reading a cache and for the softmax", () => {
    expect(loops.filter(isMatrixLoop).length).toBeGreaterThanOrEqual(4);
    expect(loops.filter(isReadingLoop).length).toBeGreaterThanOrEqual(1);
    expect(loops.filter(isExponentialLoop).length).toBeGreaterThanOrEqual(1);
  });

  test("multiplies and adds in one instruction if it is the relaxed one, and only then", () => {
    const relaxed = functions.reduce((sum, f) => sum + total(f, (code) => code >= op.relaxedFirst && code <= op.relaxedLast), 0);
    if (!file.includes("relaxed")) return expect(relaxed).toBe(0);
    for (const loop of loops.filter(isMatrixLoop)) {
      expect(times(loop, op.relaxedMadd)).toBeGreaterThanOrEqual(8);
      expect(times(loop, op.mul)).toBe(0);
    }
    expect(loops.some((loop) => isExponentialLoop(loop) && times(loop, op.relaxedMadd) >= 6 && times(loop, op.relaxedNmadd) >= 2)).toBe(
      true,
    );
  });

  test("holds no more than the registers of x86-64 in a matrix loop", () => {
    // 8 sums, 2 vectors and a splat, or 2 × 4 of them: more than 8 multiply-adds would mean sums that are spilled.
    for (const loop of loops.filter(isMatrixLoop)) expect(multiplyAdds(loop)).toBeLessThanOrEqual(12);
  });

  test("has no scalar exponential and no double arithmetic where it is hot", () => {
    for (const f of hot) {
      const math = [...calledFromLoops(f, byIndex)].filter((index) => isScalarMath(byIndex.get(index)!));
      expect(math, `scalar functions called from the loops of function ${f.index}`).toEqual([]);
    }
    for (const loop of loops) {
      expect([...loop.count.keys()].filter(isDoubleArithmetic)).toEqual([]);
      expect(loop.calls).toEqual([]);
    }
  });
});

test("S03: the benchmark measures the files that are in the tarball", () => {
  const tarball = process.env["ATTENTION_TARBALL"] ?? newestTarball();
  const packed = files.map((file) => {
    const bytes = execFileSync("tar", ["-xzOf", tarball, `package/dist/${file}`], { maxBuffer: 2 ** 26 });
    return [file, createHash("sha256").update(bytes).digest("hex")];
  });
  expect(binaryHashes()).toEqual(Object.fromEntries(packed));
});

function newestTarball(): string {
  const packed = join(repository, "build/pack");
  return join(packed, readdirSync(packed).find((name) => name.endsWith(".tgz"))!);
}

test("calls that are repeated allocate nothing", async () => {
  const attn = await loadAttention();
  const random = (...shape: number[]): Tensor => ({
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => Math.sin(i)),
    shape,
  });
  const [query, key, value, out] = Array.from({ length: 4 }, () => attn.buffer([4, 300, 40]));
  const cache = attn.createKvCache({ numKvHeads: 2, headDim: 40, capacity: 700 });
  cache.append(random(1, 2, 700, 40), random(1, 2, 700, 40));
  const matrix = random(32, 32);
  const layer = attn.createMultiHeadAttention({ embedDim: 32, numHeads: 4, weights: { wq: matrix, wk: matrix, wv: matrix, wo: matrix } });
  const [step, x] = [random(4, 1, 40), random(50, 32)];
  const everything = () => {
    attn.scaledDotProductAttention(query!, key!, value!, { causal: true, out: out! });
    attn.scaledDotProductAttention(step, cache, { causal: true });
    layer.forward(x);
  };
  everything();
  const settled = attn.memory;
  for (let i = 0; i < 200; i++) everything();
  expect(attn.memory).toEqual(settled);
});
