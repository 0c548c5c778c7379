#!/usr/bin/env node
/**
 * One step of decoding, next to a plain SIMD read of the same bytes, turn by turn so that both meet the same machine:
 *
 *     node tests/bench/decode.mjs            (needs the built package: npm run build && node build-scripts/pack.mjs)
 *
 * Prints, for float32 and float16 caches of several lengths, the time of a step, its share of the reading rate, and the gain of float16.
 */
import { loadAttention } from "attention-wasm";
import { reading } from "./js/simd-limit.mjs";

const kHeads = 32;
const kKvHeads = 8;
const kHeadDim = 128;
const kLengths = [512, 2048, 8192, 16384];
const kMilliseconds = 1500;

const attn = await loadAttention({ variant: process.argv[2] ?? "auto" });
console.log(`${attn.variant}, ${kHeads} query heads, ${kKvHeads} key heads, head_dim ${kHeadDim}, Node ${process.version}`);
console.log("keys    dtype    step ms  read ms  share of reading rate  GB/s");

const times = new Map();
for (const length of kLengths) {
  for (const dtype of ["float32", "float16"]) {
    const cache = attn.createKvCache({ numKvHeads: kKvHeads, headDim: kHeadDim, capacity: length, dtype });
    const shape = [1, kKvHeads, length, kHeadDim];
    const data = Float32Array.from({ length: kKvHeads * length * kHeadDim }, (_, i) => Math.sin(i * 0.37));
    cache.append({ data, shape }, { data, shape });
    const query = attn.buffer([1, kHeads, 1, kHeadDim]);
    query.data.set(Float32Array.from(query.data, (_, i) => Math.cos(i * 0.71)));
    const bytes = 2 * data.length * (dtype === "float16" ? 2 : 4);
    const { run: read } = reading(bytes);
    const step = () => attn.scaledDotProductAttention(query, cache, { causal: true });
    const [stepTime, readTime] = race(step, read);
    times.set(`${length} ${dtype}`, stepTime);
    console.log(
      `${String(length).padEnd(7)} ${dtype}  ${stepTime.toFixed(3).padStart(7)}  ${readTime.toFixed(3).padStart(7)}` +
        `  ${`${((100 * readTime) / stepTime).toFixed(0)} %`.padStart(21)}  ${(bytes / stepTime / 1e6).toFixed(1)}`,
    );
    query.dispose();
    cache.dispose();
  }
}
for (const length of kLengths) {
  console.log(
    `float16 at ${length} keys: ${(times.get(`${length} float32`) / times.get(`${length} float16`)).toFixed(2)} times as fast as float32`,
  );
}

/** Best times of both, in milliseconds, measured in turns. */
function race(first, second) {
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const end = performance.now() + kMilliseconds; performance.now() < end; ) {
    for (const [i, run] of [first, second].entries()) {
      const started = performance.now();
      run();
      best[i] = Math.min(best[i], performance.now() - started);
    }
  }
  return best;
}
