/**
 * Attention as the formula reads, in plain loops over float64: what every test compares with. It takes the arguments of the public
 * function and shares nothing with the package, not even the reading of its options.
 */

/** A tensor of any numbers. */
export interface Numbers {
  readonly data: ArrayLike<number>;
  readonly shape: readonly number[];
}

export interface ReferenceOptions {
  layout?: "bhsd" | "bshd";
  mask?: { data: ArrayLike<number | boolean>; shape: readonly number[] };
  bias?: Numbers;
  causal?: boolean | "top-left" | "bottom-right";
  alignment?: "top-left" | "bottom-right";
  queryOffset?: number | ArrayLike<number>;
  window?: { left?: number; right?: number };
  keyLengths?: number | ArrayLike<number>;
  scale?: number;
  softcap?: number;
  alibiSlopes?: ArrayLike<number>;
  sinks?: ArrayLike<number>;
}

export interface ReferenceResult {
  /** In the order of the query's axes, with the value's width. */
  output: Float64Array;
  outputShape: number[];
  /** [batch, heads, seqLenQ, seqLenK], always with all four axes. */
  weights: Float64Array;
  weightsShape: [number, number, number, number];
  /** [batch, heads, seqLenQ] */
  lse: Float64Array;
  scaled: Float64Array;
  softcapped: Float64Array;
  masked: Float64Array;
}

interface View {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
  readonly at: (b: number, h: number, s: number, d: number) => number;
}

function view(shape: readonly number[], layout: "bhsd" | "bshd"): View {
  const full =
    shape.length === 4 ? shape : shape.length === 3 ? [1, ...shape] : layout === "bhsd" ? [1, 1, ...shape] : [1, shape[0]!, 1, shape[1]!];
  const [batch, x, y, width] = full as [number, number, number, number];
  const [heads, length] = layout === "bhsd" ? [x, y] : [y, x];
  const at =
    layout === "bhsd"
      ? (b: number, h: number, s: number, d: number) => ((b * heads + h) * length + s) * width + d
      : (b: number, h: number, s: number, d: number) => ((b * length + s) * heads + h) * width + d;
  return { batch, heads, length, width, at };
}

/** Element (b, h, q, k) of a tensor that broadcasts as NumPy does. */
function broadcast<T>(data: ArrayLike<T>, shape: readonly number[]): (...index: [number, number, number, number]) => T {
  return (...index) => {
    let at = 0;
    for (let axis = 0; axis < shape.length; axis++) {
      const size = shape[axis]!;
      at = at * size + (size === 1 ? 0 : index[4 - shape.length + axis]!);
    }
    return data[at]!;
  };
}

const perRow = (given: number | ArrayLike<number>, b: number): number => (typeof given === "number" ? given : given[b]!);

export function referenceAttention(query: Numbers, key: Numbers, value: Numbers, options: ReferenceOptions = {}): ReferenceResult {
  const layout = options.layout ?? "bhsd";
  const q = view(query.shape, layout);
  const k = view(key.shape, layout);
  const v = view(value.shape, layout);
  const outputShape = [...query.shape.slice(0, -1), v.width];
  const o = view(outputShape, layout);
  const group = q.heads / k.heads;
  const scale = options.scale ?? 1 / Math.sqrt(q.width);
  const softcap = options.softcap ?? 0;
  const open = (side: number | undefined): number => (side === undefined || side < 0 ? Number.POSITIVE_INFINITY : side);
  const left = open(options.window?.left);
  const right = open(options.window?.right);
  const alignment = typeof options.causal === "string" ? options.causal : options.alignment;
  const isCausal = options.causal !== undefined && options.causal !== false;
  const mask = options.mask && broadcast(options.mask.data, options.mask.shape);
  const bias = options.bias && broadcast(options.bias.data, options.bias.shape);

  const rows = q.batch * q.heads * q.length;
  const matrix = () => new Float64Array(rows * k.length);
  const result: ReferenceResult = {
    output: new Float64Array(rows * v.width),
    outputShape,
    weights: matrix(),
    weightsShape: [q.batch, q.heads, q.length, k.length],
    lse: new Float64Array(rows),
    scaled: matrix(),
    softcapped: matrix(),
    masked: matrix(),
  };

  for (let b = 0; b < q.batch; b++) {
    const valid = options.keyLengths === undefined ? k.length : perRow(options.keyLengths, b);
    let offset = 0;
    if (options.queryOffset !== undefined) offset = perRow(options.queryOffset, b);
    else if (alignment === "bottom-right") offset = valid - q.length;
    for (let h = 0; h < q.heads; h++) {
      const g = Math.floor(h / group);
      for (let t = 0; t < q.length; t++) {
        const position = t + offset;
        const row = (b * q.heads + h) * q.length + t;
        const sees: number[] = [];
        for (let s = 0; s < k.length; s++) {
          let score = 0;
          for (let d = 0; d < q.width; d++) score += query.data[q.at(b, h, t, d)]! * key.data[k.at(b, g, s, d)]!;
          score *= scale;
          result.scaled[row * k.length + s] = score;
          if (softcap > 0) score = softcap * Math.tanh(score / softcap);
          result.softcapped[row * k.length + s] = score;
          if (options.alibiSlopes) score -= options.alibiSlopes[h]! * Math.abs(position - s);
          const isSeen =
            s < valid &&
            (!isCausal || s <= position) &&
            s >= position - left &&
            s <= position + right &&
            (mask === undefined || Boolean(mask(b, h, t, s))) &&
            (bias === undefined || bias(b, h, t, s) !== Number.NEGATIVE_INFINITY);
          if (bias && isSeen) score += bias(b, h, t, s);
          result.masked[row * k.length + s] = isSeen ? score : Number.NEGATIVE_INFINITY;
          if (isSeen) sees.push(s);
        }
        const sink = options.sinks?.[h] ?? Number.NEGATIVE_INFINITY;
        let max = sink;
        for (const s of sees) max = Math.max(max, result.masked[row * k.length + s]!);
        if (max === Number.NEGATIVE_INFINITY) {
          result.lse[row] = Number.NEGATIVE_INFINITY; // sees no key: output and weights stay 0
          continue;
        }
        let sum = Math.exp(sink - max);
        for (const s of sees) sum += Math.exp(result.masked[row * k.length + s]! - max);
        result.lse[row] = max + Math.log(sum);
        for (const s of sees) {
          const weight = Math.exp(result.masked[row * k.length + s]! - max) / sum;
          result.weights[row * k.length + s] = weight;
          for (let d = 0; d < v.width; d++) {
            const at = o.at(b, h, t, d);
            result.output[at] = result.output[at]! + weight * value.data[v.at(b, g, s, d)]!;
          }
        }
      }
    }
  }
  return result;
}

/** Numbers that look random and are the same everywhere: uniform in [-1, 1), from a seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
}

/** A float32 tensor of such numbers. */
export function randomTensor(shape: readonly number[], seed: number, size = 1): { data: Float32Array; shape: number[] } {
  const next = seeded(seed);
  return { data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => next() * size), shape: [...shape] };
}

/**
 * Largest difference in units of the tolerance 2e-6 + 1e-5 · |expected| (USER-CASES N20): at most 1 is right. Equal infinities and NaN
 * in the same places are equal; anything else that is not finite is infinitely wrong.
 */
export function error(got: ArrayLike<number>, expected: ArrayLike<number>, absolute = 2e-6, relative = 1e-5): number {
  if (got.length !== expected.length) return Number.POSITIVE_INFINITY;
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const a = got[i]!;
    const e = expected[i]!;
    if (Object.is(a, e) || a === e) continue;
    const off = Math.abs(a - e) / (absolute + relative * Math.abs(e));
    worst = Number.isNaN(off) ? Number.POSITIVE_INFINITY : Math.max(worst, off);
  }
  return worst;
}
