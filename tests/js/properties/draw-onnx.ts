/** Draws calls of ONNX's Attention: inputs and attributes by ONNX's names, and the same as a problem for the reference. */
import type { AttentionAttributes } from "attention-wasm/onnx";
import fc from "fast-check";
import { swapped } from "./draw.js";
import { Random } from "./random.js";
import type { Problem } from "./reference.js";

/** Every choice that decides a call; numbers come from `seed`. */
export interface OnnxChoices {
  seed: number;
  batch: number;
  kvHeads: number;
  group: number;
  queries: number;
  newKeys: number;
  width: number;
  valueWidth: number;
  rank: 3 | 4;
  /** length of the past; undefined = none */
  past: number | undefined;
  hasNonpad: boolean;
  mask: "none" | "boolean" | "float";
  isCausal: boolean;
  scale: number | undefined;
  softcap: number;
  mode: 0 | 1 | 2 | 3;
  /** the window of opset 25; -1 = open */
  left: number;
  right: number;
  size: number;
}

export interface OnnxArray {
  data: Float32Array | Uint8Array | number[];
  shape: number[];
}

export interface OnnxCall {
  inputs: {
    Q: OnnxArray;
    K: OnnxArray;
    V: OnnxArray;
    attn_mask?: OnnxArray;
    past_key?: OnnxArray;
    past_value?: OnnxArray;
    nonpad_kv_seqlen?: OnnxArray;
  };
  attributes: AttentionAttributes;
  problem: Problem;
}

const length = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 40 }));
const width = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }));

export const onnxChoices: fc.Arbitrary<OnnxChoices> = fc
  .record({
    seed: fc.nat(),
    batch: fc.integer({ min: 1, max: 3 }),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    queries: length,
    newKeys: length,
    width,
    valueWidth: width,
    rank: fc.constantFrom(3 as const, 4 as const),
    cache: fc.oneof(fc.constant("none" as const), fc.constant("nonpad" as const), fc.integer({ min: 1, max: 30 })),
    mask: fc.constantFrom("none" as const, "boolean" as const, "float" as const),
    isCausal: fc.boolean(),
    scale: fc.constantFrom(undefined, undefined, undefined, 0.1, 0.25, 1, 2, -0.5),
    softcap: fc.constantFrom(0, 0, 2, 20),
    mode: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
    // The peer has no window yet, so most calls have none.
    window: fc.oneof(
      { weight: 4, arbitrary: fc.constant({ left: -1, right: -1 }) },
      { weight: 1, arbitrary: fc.record({ left: fc.constantFrom(-1, 0, 3), right: fc.constantFrom(-1, 0, 2) }) },
    ),
    size: fc.constantFrom(0, 1, 4),
  })
  .map(({ cache, window, ...rest }) => ({
    ...rest,
    ...window,
    past: typeof cache === "number" ? cache : undefined,
    hasNonpad: cache === "nonpad",
  }));

export function buildOnnx(c: OnnxChoices): OnnxCall {
  const random = new Random(c.seed);
  const { batch, kvHeads, queries, width, valueWidth } = c;
  const heads = kvHeads * c.group;
  const past = c.past ?? 0;
  const keys = past + c.newKeys;

  const query = random.floats(batch * heads * queries * width, c.size);
  const key = random.floats(batch * kvHeads * keys * width, c.size);
  const value = random.floats(batch * kvHeads * keys * valueWidth, 2);
  const inputs: OnnxCall["inputs"] = {
    Q: tensor(c.rank, query, batch, heads, queries, width),
    K: tensor(c.rank, positions(key, keys, width, past, keys), batch, kvHeads, c.newKeys, width),
    V: tensor(c.rank, positions(value, keys, valueWidth, past, keys), batch, kvHeads, c.newKeys, valueWidth),
  };
  if (c.past !== undefined) {
    inputs.past_key = tensor(4, positions(key, keys, width, 0, past), batch, kvHeads, past, width);
    inputs.past_value = tensor(4, positions(value, keys, valueWidth, 0, past), batch, kvHeads, past, valueWidth);
  }
  const nonpad = c.hasNonpad ? Array.from({ length: batch }, () => random.integer(0, keys)) : undefined;
  if (nonpad !== undefined) inputs.nonpad_kv_seqlen = { data: nonpad, shape: [batch] };
  const mask = c.mask === "none" ? undefined : drawMask(random, c.mask, [batch, heads, queries, keys]);
  if (mask !== undefined) inputs.attn_mask = mask;

  const attributes: AttentionAttributes = {
    ...(c.isCausal && { is_causal: 1 }),
    ...(c.rank === 3 && { q_num_heads: heads, kv_num_heads: kvHeads }),
    ...(c.scale !== undefined && { scale: c.scale }),
    ...(c.softcap !== 0 && { softcap: c.softcap }),
    ...(c.mode !== 0 && { qk_matmul_output_mode: c.mode }),
    ...(c.left >= 0 && { left_window_size: c.left }),
    ...(c.right >= 0 && { right_window_size: c.right }),
  };

  const seen = new Uint8Array(batch * heads * queries * keys);
  const added = new Float64Array(seen.length);
  let at = 0;
  for (let b = 0; b < batch; b++) {
    const offset = nonpad === undefined ? past : nonpad[b]! - queries;
    for (let h = 0; h < heads; h++) {
      for (let t = 0; t < queries; t++) {
        for (let s = 0; s < keys; s++, at++) {
          const p = offset + t;
          const masked = mask === undefined ? 0 : maskAt(mask, keys, [b, h, t, s]);
          added[at] = masked;
          const isHidden =
            (nonpad !== undefined && s >= nonpad[b]!) ||
            (c.isCausal && s > p) ||
            (c.left >= 0 && s < p - c.left) ||
            (c.right >= 0 && s > p + c.right) ||
            masked === Number.NEGATIVE_INFINITY;
          seen[at] = isHidden ? 0 : 1;
        }
      }
    }
  }
  const scale = c.scale ?? 1 / Math.sqrt(width);
  return {
    inputs,
    attributes,
    problem: { ...{ batch, heads, kvHeads, queries, keys, width, valueWidth, query, key, value, scale, seen, added }, softcap: c.softcap },
  };
}

/** Positions `from` to `to` of [rows, length, width]. */
function positions(data: Float32Array, length: number, width: number, from: number, to: number): Float32Array {
  return data.filter((_, i) => Math.floor(i / width) % length >= from && Math.floor(i / width) % length < to);
}

function tensor(rank: 3 | 4, data: Float32Array, batch: number, heads: number, length: number, width: number): OnnxArray {
  if (rank === 4) return { data, shape: [batch, heads, length, width] };
  return { data: swapped(data, batch, heads, length, width), shape: [batch, length, heads * width] };
}

/** A mask of rank 2 to 4 that broadcasts; in a fifth of the cases its last axis is shorter than the keys. */
function drawMask(random: Random, kind: "boolean" | "float", full: readonly number[]): OnnxArray {
  const rank = random.integer(2, 4);
  const shape = full.slice(4 - rank).map((size, axis) => (axis < rank - 2 && random.chance(0.5) ? 1 : size));
  if (full[3]! > 2 && random.chance(0.2)) shape[rank - 1] = random.integer(2, full[3]! - 1);
  const elements = shape.reduce((product, size) => product * size, 1);
  const density = random.next();
  const data =
    kind === "boolean"
      ? Uint8Array.from({ length: elements }, () => (random.chance(density) ? 1 : 0))
      : Float32Array.from({ length: elements }, () => (random.chance(0.3) ? Number.NEGATIVE_INFINITY : random.between(-3, 3)));
  return { data, shape };
}

/** What a mask adds: 0 or -Infinity for a boolean one, and -Infinity beyond its end. */
function maskAt({ data, shape }: OnnxArray, keys: number, index: readonly number[]): number {
  const last = shape[shape.length - 1]!;
  if (last !== 1 && last < keys && index[3]! >= last) return Number.NEGATIVE_INFINITY;
  let flat = 0;
  for (const [axis, size] of shape.entries()) flat = flat * size + (size === 1 ? 0 : index[4 - shape.length + axis]!);
  return data instanceof Uint8Array ? (data[flat] === 1 ? 0 : Number.NEGATIVE_INFINITY) : (data[flat] as number);
}
