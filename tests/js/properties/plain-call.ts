/** Calls for the laws: queries, keys and values of drawn sizes, heads first, with nothing else; and how near two ways of computing the same have to be. */
import type { Attention, Tensor } from "attention-wasm";
import fc from "fast-check";
import { Random } from "./random.js";
import { solve } from "./reference.js";

export interface PlainCall {
  random: Random;
  batch: number;
  heads: number;
  kvHeads: number;
  queries: number;
  keys: number;
  width: number;
  valueWidth: number;
  query: Tensor;
  key: Tensor;
  value: Tensor;
  /** What the outputs of two float32 computations may differ by. */
  tolerance: number;
}

const length = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 80 }), fc.constantFrom(32, 33, 64, 128, 129, 200));
const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70 }));

/** What is drawn: a handful of integers, which fast-check can shrink and print. */
export const plainSizes = fc
  .record({
    seed: fc.nat(),
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 4 }),
    queries: length,
    keys: length,
    width,
    valueWidth: width,
    size: fc.constantFrom(0.5, 1, 2),
  })
  .filter((c) => c.batch * c.kvHeads * c.group * c.queries * c.keys * (c.width + c.valueWidth) <= 400_000);

export type PlainSizes = typeof plainSizes extends fc.Arbitrary<infer Sizes> ? Sizes : never;

/** As many keys as queries. */
export const squareSizes: fc.Arbitrary<PlainSizes> = plainSizes.map((c) => ({
  ...c,
  keys: Math.min(c.keys, c.queries),
  queries: Math.min(c.keys, c.queries),
}));

/** The call of these sizes: the same one each time. */
export function makeCall(c: PlainSizes): PlainCall {
  const { batch, kvHeads, queries, keys, width, valueWidth } = c;
  const random = new Random(c.seed);
  const heads = kvHeads * c.group;
  const query = random.floats(batch * heads * queries * width, c.size);
  const key = random.floats(batch * kvHeads * keys * width, c.size);
  const value = random.floats(batch * kvHeads * keys * valueWidth, 2);
  const pairs = batch * heads * queries * keys;
  const all = { batch, heads, kvHeads, queries, keys, width, valueWidth, query, key, value, softcap: 0, scale: 1 / Math.sqrt(width) };
  const { scoreSlack } = solve({ ...all, seen: new Uint8Array(pairs).fill(1), added: new Float64Array(pairs) });
  // Whatever is hidden later, no row is worse off than the worst with all keys.
  const tolerance = 4 * (2 * scoreSlack.reduce((a, b) => Math.max(a, b), 0) + 2 ** -23 * (32 + keys / 64)) * 2;
  return {
    ...{ random, batch, heads, kvHeads, queries, keys, width, valueWidth, tolerance },
    query: { data: query, shape: [batch, heads, queries, width] },
    key: { data: key, shape: [batch, kvHeads, keys, width] },
    value: { data: value, shape: [batch, kvHeads, keys, valueWidth] },
  };
}

/** Some elements of one axis of a tensor, in the given order. */
export function pick<Data extends Float32Array | Uint8Array>(tensor: Tensor<Data>, axis: number, indices: readonly number[]): Tensor<Data> {
  const { data, shape } = tensor;
  const size = shape[axis]!;
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const result =
    data instanceof Uint8Array ? new Uint8Array(outer * indices.length * inner) : new Float32Array(outer * indices.length * inner);
  for (let o = 0; o < outer; o++) {
    indices.forEach((index, i) => {
      const from = (o * size + index) * inner;
      result.set(data.subarray(from, from + inner), (o * indices.length + i) * inner);
    });
  }
  return { data: result as Data, shape: shape.map((s, i) => (i === axis ? indices.length : s)) };
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}

export type Instance = { name: string; attn: Attention };

/** Throws with the place where two results differ by more than the tolerance; NaN equals NaN. */
export function expectNear(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number, what: string): void {
  if (actual.length !== expected.length) throw new Error(`${what}: ${actual.length} elements, expected ${expected.length}`);
  for (let i = 0; i < actual.length; i++) {
    const a = actual[i]!;
    const b = expected[i]!;
    if (!Object.is(a, b) && !(Math.abs(a - b) <= tolerance)) throw new Error(`${what}: ${a} at ${i}, expected ${b} within ${tolerance}`);
  }
}

/** The same, bit by bit. */
export function expectSame(actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  expectNear(actual, expected, -1, what);
}
