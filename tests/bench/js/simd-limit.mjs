/**
 * What the SIMD units and the memory can give in this engine, as contestants among the others: multiply-adds between registers, and a plain read of
 * as many bytes as a decoding step has to read.
 */
import {
  advance,
  add,
  assemble,
  firstLaneOfSum,
  get,
  loop,
  multiply,
  multiplyAdd,
  set,
  splat,
  vectorLoad,
  xor,
} from "./wasm-assembler.mjs";
import { cacheBytes } from "./workload.mjs";

export const load = async ({ limit }) => ({
  prepare: (w) => (w.group === "decode" ? reading(cacheBytes(w)) : computing(limit === "relaxed")),
});

/** Independent chains sum = sum · x + y. How many hide the latency best depends on the machine, so the best of a few is taken. */
function computing(fused) {
  const steps = 20_000;
  const best = [8, 10, 12]
    .map((chains) => ({ chains, f: instance(chainLoop(chains, fused)).f }))
    .map((it) => ({ ...it, rate: rateOf(it, steps) }));
  const { f, chains } = best.reduce((a, b) => (b.rate > a.rate ? b : a));
  return { run: () => f(steps, 0), units: steps * 4 * chains * 8 };
}

function rateOf({ f, chains }, steps) {
  let best = 0;
  for (let i = 0; i < 8; i++) {
    const started = performance.now();
    f(steps, 0);
    best = Math.max(best, chains / (performance.now() - started));
  }
  return best;
}

function chainLoop(chains, fused) {
  const sums = Array.from({ length: chains }, (_, i) => 2 + i);
  const [x, y] = [2 + chains, 3 + chains];
  const step = sums.flatMap((s) => [
    ...get(s),
    ...get(x),
    ...(fused ? [...get(y), ...multiplyAdd] : [...multiply, ...get(y), ...add]),
    ...set(s),
  ]);
  const body = [...splat(0.999), ...set(x), ...splat(0.001), ...set(y), ...loop([step, step, step, step].flat()), ...firstLaneOfSum(sums)];
  return { vectors: chains + 2, body };
}

/** Reads `bytes` bytes once with v128.load: what a decoding step cannot beat. */
export function reading(bytes) {
  const [block, chains] = [256, 8];
  const reads = Array.from({ length: block / 16 }, (_, i) => {
    const sum = 2 + (i % chains);
    return [...get(sum), ...get(1), ...vectorLoad(16 * i), ...xor, ...set(sum)];
  });
  const sums = Array.from({ length: chains }, (_, i) => 2 + i);
  const exports = instance({ vectors: chains, body: [...loop([...reads.flat(), ...advance(1, block)]), ...firstLaneOfSum(sums)], bytes });
  // Memory that was never written is one page of zeros, mapped everywhere: that would measure the cache.
  new Uint32Array(exports.m.buffer).fill(1);
  return { run: () => exports.f(bytes / block, 0), units: bytes };
}

const instance = (parts) => new WebAssembly.Instance(new WebAssembly.Module(assemble(parts))).exports;
