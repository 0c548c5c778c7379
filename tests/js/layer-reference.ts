/**
 * Attention with its projections, in plain loops over float64: what the tests of the layer compare with. It shares nothing with the package; attention itself
 * is reference.ts.
 */
import { type Numbers, type ReferenceOptions, type ReferenceResult, referenceAttention } from "./reference.js";

/** Weights [out, in], as plain numbers. */
export interface ReferenceWeights {
  wq: Numbers;
  wk: Numbers;
  wv: Numbers;
  wo: Numbers;
  bq?: Numbers | undefined;
  bk?: Numbers | undefined;
  bv?: Numbers | undefined;
  bo?: Numbers | undefined;
  queryNorm?: Numbers | undefined;
  keyNorm?: Numbers | undefined;
  extraKey?: Numbers | undefined;
  extraValue?: Numbers | undefined;
}

export interface ReferenceRotary {
  /** Angle per position of each pair. */
  frequencies: ArrayLike<number>;
  interleaved?: boolean;
  /** Factor on cos and sin. */
  factor?: number;
  /** Position of the element t of batch row b. Default: t. */
  position?: (b: number, t: number) => number;
}

export interface LayerReferenceOptions extends ReferenceOptions {
  numHeads: number;
  numKvHeads?: number;
  key?: Numbers;
  value?: Numbers;
  rotary?: ReferenceRotary;
  normEpsilon?: number;
}

interface Heads {
  data: Float64Array;
  shape: number[];
}

/** y = x · Wᵀ + b over the last axis. */
export function project(x: Numbers, weight: Numbers, bias?: Numbers): Heads {
  const [outDim, inDim] = weight.shape as [number, number];
  const rows = x.data.length / inDim;
  const data = new Float64Array(rows * outDim);
  for (let r = 0; r < rows; r++) {
    for (let o = 0; o < outDim; o++) {
      let sum = bias === undefined ? 0 : bias.data[o]!;
      for (let i = 0; i < inDim; i++) sum += x.data[r * inDim + i]! * weight.data[o * inDim + i]!;
      data[r * outDim + o] = sum;
    }
  }
  return { data, shape: [...x.shape.slice(0, -1), outDim] };
}

/** [batch, seq, heads · dim] to [batch, heads, seq, dim]. */
export function splitHeads({ data, shape }: Numbers, heads: number): Heads {
  const [batch, length, width] = (shape.length === 2 ? [1, ...shape] : shape) as [number, number, number];
  const dim = width / heads;
  const split = new Float64Array(data.length);
  for (let b = 0; b < batch; b++)
    for (let t = 0; t < length; t++)
      for (let h = 0; h < heads; h++)
        for (let d = 0; d < dim; d++) split[((b * heads + h) * length + t) * dim + d] = data[(b * length + t) * width + h * dim + d]!;
  return { data: split, shape: [batch, heads, length, dim] };
}

/** x / sqrt(mean of x² + epsilon) · weight, row by row. */
export function rmsNorm({ data, shape }: Heads, weight: Numbers | undefined, epsilon: number): Heads {
  if (weight === undefined) return { data, shape };
  const dim = shape[shape.length - 1]!;
  const normed = new Float64Array(data.length);
  for (let row = 0; row < data.length; row += dim) {
    let sum = 0;
    for (let d = 0; d < dim; d++) sum += data[row + d]! ** 2;
    for (let d = 0; d < dim; d++) normed[row + d] = (data[row + d]! / Math.sqrt(sum / dim + epsilon)) * weight.data[d]!;
  }
  return { data: normed, shape };
}

/** Rotary positions of [batch, heads, seq, dim]. */
export function rotate({ data, shape }: Numbers, rotary: ReferenceRotary | undefined): Heads {
  const turned = Float64Array.from(data);
  if (rotary === undefined) return { data: turned, shape: [...shape] };
  const [batch, heads, length, dim] = shape as [number, number, number, number];
  const { frequencies, interleaved = false, factor = 1, position = (_: number, t: number) => t } = rotary;
  const pairs = frequencies.length;
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let t = 0; t < length; t++)
        for (let i = 0; i < pairs; i++) {
          const row = ((b * heads + h) * length + t) * dim;
          const first = row + (interleaved ? 2 * i : i);
          const second = row + (interleaved ? 2 * i + 1 : i + pairs);
          const angle = position(b, t) * frequencies[i]!;
          const [c, s] = [factor * Math.cos(angle), factor * Math.sin(angle)];
          turned[first] = data[first]! * c - data[second]! * s;
          turned[second] = data[second]! * c + data[first]! * s;
        }
  return { data: turned, shape: [...shape] };
}

function withExtra({ data, shape }: Heads, extra: Numbers | undefined): Heads {
  if (extra === undefined) return { data, shape };
  const [batch, heads, length, dim] = shape as [number, number, number, number];
  const longer = new Float64Array(batch * heads * (length + 1) * dim);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++) {
      const row = b * heads + h;
      longer.set(data.subarray(row * length * dim, (row + 1) * length * dim), row * (length + 1) * dim);
      for (let d = 0; d < dim; d++) longer[(row * (length + 1) + length) * dim + d] = extra.data[h * dim + d]!;
    }
  return { data: longer, shape: [batch, heads, length + 1, dim] };
}

/** Frequencies base^(-2i / dim). */
export function plainFrequencies(dim: number, base = 10000): number[] {
  return Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
}

export interface LayerReference {
  query: Heads;
  key: Heads;
  value: Heads;
  attention: ReferenceResult;
  context: Heads;
  output: Heads;
}

export function referenceLayer(x: Numbers, weights: ReferenceWeights, options: LayerReferenceOptions): LayerReference {
  const { numHeads, numKvHeads = numHeads, key = x, value = key, rotary, normEpsilon = 1e-6, ...score } = options;
  const heads = (of: Numbers, w: Numbers, b: Numbers | undefined, count: number) => splitHeads(project(of, w, b), count);
  const q = rotate(rmsNorm(heads(x, weights.wq, weights.bq, numHeads), weights.queryNorm, normEpsilon), rotary);
  const k = withExtra(
    rotate(rmsNorm(heads(key, weights.wk, weights.bk, numKvHeads), weights.keyNorm, normEpsilon), rotary),
    weights.extraKey,
  );
  const v = withExtra(heads(value, weights.wv, weights.bv, numKvHeads), weights.extraValue);
  const attention = referenceAttention(q, k, v, score);
  const [batch, , length, dim] = attention.outputShape as [number, number, number, number];
  const context = new Float64Array(attention.output.length);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < numHeads; h++)
      for (let t = 0; t < length; t++)
        for (let d = 0; d < dim; d++)
          context[(b * length + t) * numHeads * dim + h * dim + d] = attention.output[((b * numHeads + h) * length + t) * dim + d]!;
  const joined = { data: context, shape: [...x.shape.slice(0, -1), numHeads * dim] };
  return { query: q, key: k, value: v, attention, context: joined, output: project(joined, weights.wo, weights.bo) };
}
