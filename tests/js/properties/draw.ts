/** Draws calls of scaledDotProductAttention: what is handed to the package, and the same as a problem for the reference. */
import type { ScaledDotProductAttentionOptions, TensorLike } from "attention-wasm";
import fc from "fast-check";
import { halfBits, halfValue } from "../../onnx/half.mjs";
import { Random } from "./random.js";
import type { Problem } from "./reference.js";

/** Every choice that decides a call. Sizes and switches are drawn by fast-check, which shrinks them; numbers come from `seed`. */
export interface Choices {
  seed: number;
  batch: number;
  kvHeads: number;
  group: number;
  queries: number;
  keys: number;
  width: number;
  valueWidth: number;
  /** size of the elements of query and key */
  size: number;
  /** how many of the optional things are given, 0 to 1 */
  rate: number;
  dtypes: "float32" | "float16" | "float16 keys";
}

/** A call, ready to be made. */
export interface Call {
  query: TensorLike;
  key: TensorLike;
  value: TensorLike;
  options: ScaledDotProductAttentionOptions;
  problem: Problem;
  isPositionsFirst: boolean;
}

// Around the tiles and lanes of a SIMD kernel, and everything below them.
const length = fc.oneof(
  fc.integer({ min: 1, max: 9 }),
  fc.integer({ min: 1, max: 70 }),
  fc.constantFrom(0, 31, 32, 33, 64, 65, 127, 128, 129, 130, 257),
);
const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70 }), fc.constantFrom(64, 128));

export const choices: fc.Arbitrary<Choices> = fc
  .record({
    seed: fc.nat(),
    batch: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constantFrom(0, 1)),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 4 }),
    queries: length,
    keys: length,
    width,
    valueWidth: width,
    size: fc.constantFrom(0, 0.5, 1, 2, 6),
    rate: fc.constantFrom(0, 0.2, 0.5, 0.8),
    dtypes: fc.constantFrom("float32" as const, "float32" as const, "float32" as const, "float16" as const, "float16 keys" as const),
  })
  // The reference is slow; a call of more work than this shows nothing that a smaller one does not.
  .filter((c) => c.batch * c.kvHeads * c.group * c.queries * c.keys * (c.width + c.valueWidth + 20) <= 600_000);

export function build(c: Choices): Call {
  const random = new Random(c.seed);
  const heads = c.kvHeads * c.group;
  const { batch, kvHeads, queries, keys, width, valueWidth } = c;
  const rounded = (data: Float32Array, isHalf: boolean) => (isHalf ? data.map((x) => halfValue(halfBits(x))) : data);
  const query = rounded(random.floats(batch * heads * queries * width, c.size), c.dtypes === "float16");
  const key = rounded(random.floats(batch * kvHeads * keys * width, c.size), c.dtypes !== "float32");
  const value = rounded(random.floats(batch * kvHeads * keys * valueWidth, 2), c.dtypes !== "float32");

  const options: ScaledDotProductAttentionOptions = {};
  const given = () => random.chance(c.rate);
  const scale = given() ? random.between(-1, 1) : undefined;
  if (scale !== undefined) options.scale = scale;
  const softcap = given() ? random.between(0.5, 30) : 0;
  if (softcap !== 0) options.softcap = softcap;
  const hasSinks = given();
  const sinks = hasSinks ? random.floats(heads, 3) : undefined;
  if (sinks !== undefined) options.sinks = sinks;
  const keyLengths = given() ? Int32Array.from({ length: batch }, () => random.integer(0, keys)) : undefined;
  if (keyLengths !== undefined) options.keyLengths = keyLengths;

  const positions = drawPositions(random, given, c, keyLengths, options);
  const mask = given() ? drawMatrix(random, [batch, heads, queries, keys]) : undefined;
  if (mask !== undefined) {
    const density = random.next();
    const data = Uint8Array.from({ length: mask.elements }, () => (random.chance(density) ? random.integer(1, 255) : 0));
    options.mask = { data, shape: mask.shape };
    mask.values = data;
  }
  const bias = given() ? drawMatrix(random, [batch, heads, queries, keys]) : undefined;
  if (bias !== undefined) {
    const special = random.chance(0.5) ? 0.2 : 0;
    const data = Float32Array.from({ length: bias.elements }, () =>
      random.chance(special) ? (random.chance(0.7) ? Number.NEGATIVE_INFINITY : -1e9) : random.between(-3, 3),
    );
    options.bias = { data, shape: bias.shape };
    bias.values = data;
  }
  const problem: Problem = {
    ...{ batch, heads, kvHeads, queries, keys, width, valueWidth, query, key, value, softcap, sinks },
    scale: scale ?? 1 / Math.sqrt(width),
    ...visibility(c, keyLengths, positions, mask, bias),
  };
  if (given()) poisonHiddenKeys(random, problem, key, value);

  const isPositionsFirst = given();
  if (isPositionsFirst) options.layout = "bshd";
  const rank = batch === 1 && heads === 1 ? random.integer(2, 4) : batch === 1 ? random.integer(3, 4) : 4;
  const tensor = (data: Float32Array, heads: number, length: number, width: number, isHalf: boolean): TensorLike => {
    const ordered = isPositionsFirst ? swapped(data, batch, heads, length, width) : data;
    const full = isPositionsFirst ? [batch, length, heads, width] : [batch, heads, length, width];
    const shape = rank === 4 ? full : rank === 3 ? full.slice(1) : [length, width];
    return isHalf ? { data: Uint16Array.from(ordered, halfBits), shape, dtype: "float16" } : { data: ordered, shape };
  };
  return {
    query: tensor(query, heads, queries, width, c.dtypes === "float16"),
    key: tensor(key, kvHeads, keys, width, c.dtypes !== "float32"),
    value: tensor(value, kvHeads, keys, valueWidth, c.dtypes !== "float32"),
    options,
    problem,
    isPositionsFirst,
  };
}

/** [batch, heads, length, width] as [batch, length, heads, width]. */
export function swapped(data: Float32Array, batch: number, heads: number, length: number, width: number): Float32Array {
  const result = new Float32Array(data.length);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < length; i++)
        for (let d = 0; d < width; d++)
          result[((b * length + i) * heads + h) * width + d] = data[((b * heads + h) * length + i) * width + d]!;
  return result;
}

/** Who sees whom, and what is added, pair by pair. */
function visibility(
  c: Choices,
  keyLengths: Int32Array | undefined,
  positions: Positions,
  mask: Matrix | undefined,
  bias: Matrix | undefined,
) {
  const heads = c.kvHeads * c.group;
  const seen = new Uint8Array(c.batch * heads * c.queries * c.keys);
  const added = new Float64Array(seen.length);
  let at = 0;
  for (let b = 0; b < c.batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let t = 0; t < c.queries; t++) {
        const position = positions.of(b, t);
        for (let s = 0; s < c.keys; s++, at++) {
          const addend = bias === undefined ? 0 : bias.at(b, h, t, s);
          const isHidden =
            (keyLengths !== undefined && s >= keyLengths[b]!) ||
            !positions.sees(b, t, s) ||
            (mask !== undefined && mask.at(b, h, t, s) === 0) ||
            addend === Number.NEGATIVE_INFINITY;
          seen[at] = isHidden ? 0 : 1;
          added[at] = addend - (positions.slopes === undefined ? 0 : positions.slopes[h]! * Math.abs(position - s));
        }
      }
    }
  }
  return { seen, added };
}

// ---- positions -------------------------------------------------------------------------------------------------------

interface Positions {
  of(b: number, t: number): number;
  sees(b: number, t: number, s: number): boolean;
  slopes: Float32Array | undefined;
}

function drawPositions(
  random: Random,
  given: () => boolean,
  { batch, kvHeads, group, queries, keys }: Choices,
  keyLengths: Int32Array | undefined,
  options: ScaledDotProductAttentionOptions,
): Positions {
  const isCausal = given();
  const side = () => (random.chance(0.3) ? -1 : random.integer(0, Math.max(1, keys)));
  const window = given() ? { left: side(), right: side() } : undefined;
  const slopes = given() ? random.floats(kvHeads * group, 1).map(Math.abs) : undefined;
  if (isCausal) options.causal = true;
  if (window !== undefined) options.window = window;
  if (slopes !== undefined) options.alibiSlopes = slopes;

  let offsets = new Array<number>(batch).fill(0);
  if (isCausal || window !== undefined || slopes !== undefined) {
    const kind = random.integer(0, queries === keys ? 4 : 3);
    if (kind === 0) {
      options.alignment = "top-left";
    } else if (kind === 1) {
      options.alignment = "bottom-right";
      offsets = offsets.map((_, b) => (keyLengths?.[b] ?? keys) - queries);
    } else if (kind === 2) {
      options.queryOffset = random.integer(-queries, keys);
      offsets = offsets.fill(options.queryOffset);
    } else if (kind === 3) {
      offsets = offsets.map(() => random.integer(-queries, keys));
      options.queryOffset = offsets;
    }
  }
  const left = window === undefined || window.left < 0 ? Number.POSITIVE_INFINITY : window.left;
  const right = window === undefined || window.right < 0 ? Number.POSITIVE_INFINITY : window.right;
  const of = (b: number, t: number) => offsets[b]! + t;
  return { of, slopes, sees: (b, t, s) => s >= of(b, t) - left && s <= of(b, t) + right && (!isCausal || s <= of(b, t)) };
}

// ---- matrices that broadcast -------------------------------------------------------------------------------------------

interface Matrix {
  shape: number[];
  elements: number;
  values: ArrayLike<number>;
  at(b: number, h: number, t: number, s: number): number;
}

/** A shape of rank 1 to 4 that broadcasts to `full`. */
function drawMatrix(random: Random, full: readonly number[]): Matrix {
  const rank = random.integer(1, 4);
  const shape = full.slice(4 - rank).map((size) => (random.chance(0.25) ? 1 : size));
  const strides = [0, 0, 0, 0];
  let elements = 1;
  for (let axis = rank - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1) strides[4 - rank + axis] = elements;
    elements *= shape[axis]!;
  }
  const [ofB, ofH, ofT, ofS] = strides as [number, number, number, number];
  const matrix: Matrix = { shape, elements, values: [], at: (b, h, t, s) => matrix.values[b * ofB + h * ofH + t * ofT + s * ofS]! };
  return matrix;
}

/** NaN and infinity where no query looks: they must change nothing. */
function poisonHiddenKeys(random: Random, p: Problem, key: Float32Array, value: Float32Array): void {
  const group = p.heads / p.kvHeads;
  for (let b = 0; b < p.batch; b++) {
    for (let g = 0; g < p.kvHeads; g++) {
      for (let s = 0; s < p.keys; s++) {
        if (isSeen(p, b, g * group, group, s) || random.chance(0.5)) continue;
        const poison = random.chance(0.5) ? Number.NaN : Number.POSITIVE_INFINITY;
        const row = (b * p.kvHeads + g) * p.keys + s;
        key.fill(poison, row * p.width, (row + 1) * p.width);
        value.fill(poison, row * p.valueWidth, (row + 1) * p.valueWidth);
      }
    }
  }
}

function isSeen(p: Problem, b: number, firstHead: number, group: number, s: number): boolean {
  const firstRow = (b * p.heads + firstHead) * p.queries;
  for (let row = firstRow; row < firstRow + group * p.queries; row++) if (p.seen[row * p.keys + s] === 1) return true;
  return false;
}
