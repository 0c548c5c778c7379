/** Laws of attention, as properties of drawn calls on every binary that ships. Where nothing may change, not one bit does. */
import type { ScaledDotProductAttentionOptions, Tensor, TensorLike } from "attention-wasm";
import fc from "fast-check";
import { afterAll, describe, test } from "vitest";
import { build, choices, swapped } from "./draw.js";
import { expectNear, expectSame, type Instance, makeCall, type PlainCall, pick, plainSizes, range, squareSizes } from "./plain-call.js";
import type { Random } from "./random.js";
import { loadAll, runs, seed } from "./settings.js";

const instances: Instance[] = await loadAll();
afterAll(() => {
  for (const { attn } of instances) attn.dispose();
});

const numRuns = Math.ceil(runs / 10);

/** The law holds for drawn calls on all binaries. The call is made anew for each, since laws draw numbers from it. */
function law<Drawn, Call>(
  name: string,
  draws: fc.Arbitrary<Drawn>,
  make: (drawn: Drawn) => Call,
  holds: (instance: Instance, call: Call) => void,
): void {
  test(`${name} (${numRuns} draws, seed ${seed})`, { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(draws, (drawn) => {
        for (const instance of instances) holds(instance, make(drawn));
      }),
      { numRuns },
    );
  });
}

const output = ({ attn }: Instance, c: Pick<PlainCall, "query" | "key" | "value">, options?: ScaledDotProductAttentionOptions) =>
  attn.scaledDotProductAttention(c.query, c.key, c.value, options).output.data;

describe("keys", () => {
  law("permuting keys, values and the columns of a bias together changes nothing", plainSizes, makeCall, (instance, c) => {
    const order = shuffled(c.keys, c.random);
    const bias: Tensor = { data: c.random.floats(c.queries * c.keys, 2), shape: [c.queries, c.keys] };
    const permuted = { query: c.query, key: pick(c.key, 2, order), value: pick(c.value, 2, order) };
    const options = { bias: pick(bias, 1, order) };
    expectNear(output(instance, permuted, options), output(instance, c, { bias }), 2 * c.tolerance, instance.name);
  });

  law("a future key changes nothing under causal", squareSizes, makeCall, (instance, c) => {
    const cut = c.random.integer(0, c.keys - 1);
    const earlier = (key: Tensor, value: Tensor) => {
      const data = output(instance, { query: c.query, key, value }, { causal: true });
      return pick({ data, shape: [c.batch, c.heads, c.queries, c.valueWidth] }, 2, range(0, cut)).data;
    };
    const expected = earlier(c.key, c.value);
    expectSame(earlier(filledFrom(c.key, cut, 2), filledFrom(c.value, cut, -3)), expected, `${instance.name}: other numbers`);
    // What is not finite is kept out of sums by another order of operations, which may round differently.
    const poisoned = earlier(filledFrom(c.key, cut, Number.NaN), filledFrom(c.value, cut, Number.POSITIVE_INFINITY));
    expectNear(poisoned, expected, c.tolerance, `${instance.name}: NaN and infinity`);
  });

  law("splitting the keys and merging by lse equals one call", plainSizes, makeCall, (instance, c) => {
    const { attn, name } = instance;
    const cut = c.random.integer(0, c.keys);
    const parts = [range(0, cut), range(cut, c.keys)].map((some) =>
      attn.scaledDotProductAttention(c.query, pick(c.key, 2, some), pick(c.value, 2, some), { returnLse: true }),
    );
    const whole = attn.scaledDotProductAttention(c.query, c.key, c.value, { returnLse: true });
    const merged = new Float64Array(whole.output.data.length);
    const lse = new Float64Array(whole.lse!.data.length);
    for (let row = 0; row < lse.length; row++) {
      const [a, b] = parts.map((part) => part.lse!.data[row]!) as [number, number];
      const top = Math.max(a, b);
      lse[row] = top + Math.log(Math.exp(a - top) + Math.exp(b - top));
      for (let e = 0; e < c.valueWidth; e++) {
        const at = row * c.valueWidth + e;
        merged[at] = Math.exp(a - lse[row]!) * parts[0]!.output.data[at]! + Math.exp(b - lse[row]!) * parts[1]!.output.data[at]!;
      }
    }
    expectNear(whole.output.data, merged, 2 * c.tolerance, `${name}: output`);
    expectNear(whole.lse!.data, lse, 2 * c.tolerance, `${name}: lse`);
  });

  law("a window equals its mask", plainSizes, makeCall, (instance, c) => {
    const [left, right] = [c.random.integer(-1, c.keys), c.random.integer(-1, c.keys)];
    const queryOffset = c.random.integer(-c.queries, c.keys);
    const mask = Uint8Array.from({ length: c.queries * c.keys }, (_, i) => {
      const p = Math.floor(i / c.keys) + queryOffset;
      const s = i % c.keys;
      return (left < 0 || s >= p - left) && (right < 0 || s <= p + right) ? 1 : 0;
    });
    const masked = output(instance, c, { mask: { data: mask, shape: [c.queries, c.keys] } });
    expectNear(output(instance, c, { window: { left, right }, queryOffset }), masked, c.tolerance, instance.name);
  });
});

describe("heads and batch rows", () => {
  law("grouped heads equal repeated heads", plainSizes, makeCall, (instance, c) => {
    const repeated = range(0, c.heads).map((h) => Math.floor(h / (c.heads / c.kvHeads)));
    const many = { query: c.query, key: pick(c.key, 1, repeated), value: pick(c.value, 1, repeated) };
    expectNear(output(instance, c), output(instance, many), c.tolerance, instance.name);
  });

  law("one head at a time equals all heads", plainSizes, makeCall, (instance, c) => {
    const all: Tensor = { data: output(instance, c), shape: [c.batch, c.heads, c.queries, c.valueWidth] };
    for (let h = 0; h < c.heads; h++) {
      const g = [Math.floor(h / (c.heads / c.kvHeads))];
      const one = { query: pick(c.query, 1, [h]), key: pick(c.key, 1, g), value: pick(c.value, 1, g) };
      expectNear(output(instance, one), pick(all, 1, [h]).data, c.tolerance, `${instance.name}: head ${h}`);
    }
  });

  law("a batch row does not know its neighbours", plainSizes, makeCall, (instance, c) => {
    const keyLengths = range(0, c.batch).map(() => c.random.integer(0, c.keys));
    const options = { causal: "bottom-right" as const, returnWeights: true };
    const together = instance.attn.scaledDotProductAttention(c.query, c.key, c.value, { ...options, keyLengths });
    for (let b = 0; b < c.batch; b++) {
      // Alone and without its padding.
      const seen = range(0, keyLengths[b]!);
      const key = pick(pick(c.key, 0, [b]), 2, seen);
      const value = pick(pick(c.value, 0, [b]), 2, seen);
      const alone = instance.attn.scaledDotProductAttention(pick(c.query, 0, [b]), key, value, options);
      expectNear(pick(together.output, 0, [b]).data, alone.output.data, c.tolerance, `${instance.name}: output of row ${b}`);
      const weights = pick(pick(together.weights!, 0, [b]), 3, seen);
      expectNear(weights.data, alone.weights!.data, c.tolerance, `${instance.name}: weights of row ${b}`);
    }
  });
});

describe("softmax", () => {
  law("the same number added to a row of scores changes nothing but lse", plainSizes, makeCall, (instance, c) => {
    const shifts = c.random.floats(c.queries, 50);
    const bias = { data: shifts, shape: [c.queries, 1] };
    const plain = instance.attn.scaledDotProductAttention(c.query, c.key, c.value, { returnLse: true });
    const shifted = instance.attn.scaledDotProductAttention(c.query, c.key, c.value, { returnLse: true, bias });
    const tolerance = 2 * c.tolerance + 50 * 4 * 2 ** -23 * 2; // a score near 50 is known to half a unit of 50
    expectNear(shifted.output.data, plain.output.data, tolerance, `${instance.name}: output`);
    const lse = plain.lse!.data.map((x, row) => x + shifts[row % c.queries]!);
    expectNear(shifted.lse!.data, lse, tolerance, `${instance.name}: lse`);
  });

  law("rows of weights sum to 1, or are 0 where the query sees no key", choices, build, ({ name, attn }, call) => {
    const { sinks: _, ...options } = call.options; // a sink takes its share
    const { weights } = attn.scaledDotProductAttention(call.query, call.key, call.value, { ...options, returnWeights: true });
    const { keys, seen } = call.problem;
    for (let row = 0; row * keys < seen.length && keys > 0; row++) {
      const sees = seen.subarray(row * keys, (row + 1) * keys).includes(1);
      const sum = weights!.data.subarray(row * keys, (row + 1) * keys).reduce((total, weight) => total + weight, 0);
      if (!(Math.abs(sum - (sees ? 1 : 0)) <= (sees ? 1e-6 : 0))) throw new Error(`${name}: row ${row} sums to ${sum}`);
    }
  });
});

describe("ways to ask", () => {
  law("asking for weights does not change the output", choices, build, ({ name, attn }, call) => {
    const { query, key, value, options } = call;
    const plain = attn.scaledDotProductAttention(query, key, value, options).output.data;
    for (const returnWeights of [true, "mean", { heads: [0] }] as const) {
      const { output } = attn.scaledDotProductAttention(query, key, value, { ...options, returnWeights });
      expectSame(output.data, plain, name);
    }
  });

  law('layout "bshd" gives the transposed result of the transposed inputs', plainSizes, makeCall, (instance, c) => {
    const swap = ({ data, shape: [b, h, s, d] }: Tensor): Tensor => ({ data: swapped(data, b!, h!, s!, d!), shape: [b!, s!, h!, d!] });
    const { output } = instance.attn.scaledDotProductAttention(swap(c.query), swap(c.key), swap(c.value), { layout: "bshd" });
    expectSame(swap(output).data, instance.attn.scaledDotProductAttention(c.query, c.key, c.value).output.data, instance.name);
  });

  law("sub-arrays equal copies, and what is around them stays as it is", choices, build, ({ name, attn }, call) => {
    const { query, key, value, options } = call;
    const plain = attn.scaledDotProductAttention(query, key, value, options).output.data;
    const parts = [query, key, value].map(embedded);
    const before = parts.map(({ whole }) => whole.slice());
    const [q, k, v] = parts.map(({ tensor }) => tensor) as [TensorLike, TensorLike, TensorLike];
    expectSame(attn.scaledDotProductAttention(q, k, v, options).output.data, plain, name);
    parts.forEach(({ whole }, i) => {
      expectSame(whole, before[i]!, `${name}: surroundings`);
    });
  });
});

// ---- changes to calls ----------------------------------------------------------------------------------------------

function shuffled(length: number, random: Random): number[] {
  const order = range(0, length);
  for (let i = length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/** A copy whose positions from `cut` on hold `filling`. */
function filledFrom({ data, shape }: Tensor, cut: number, filling: number): Tensor {
  const [, , length, width] = shape as [number, number, number, number];
  return { data: data.map((x, i) => (Math.floor(i / width) % length >= cut ? filling : x)), shape };
}

/** The tensor's elements one element into a larger array of 7e7 (60000 for float16, which ends at 65504). */
function embedded(tensor: TensorLike): { whole: Float32Array | Uint16Array; tensor: TensorLike } {
  const data = tensor.data as Float32Array | Uint16Array;
  const whole = data instanceof Float32Array ? new Float32Array(data.length + 3).fill(7e7) : new Uint16Array(data.length + 3).fill(0x7b53);
  whole.set(data, 1);
  return { whole, tensor: { ...tensor, data: whole.subarray(1, 1 + data.length) } as TensorLike };
}
