/** What stands around attention in a transformer block, in float64. */
import type { Numbers } from "./reference.js";

export interface Rows {
  data: Float64Array;
  shape: number[];
}

const widthOf = ({ shape }: Numbers) => shape[shape.length - 1]!;

function mapRows(x: Numbers, row: (values: number[]) => number[]): Rows {
  const width = widthOf(x);
  const data = new Float64Array(x.data.length);
  for (let at = 0; at < data.length; at += width) data.set(row(Array.from({ length: width }, (_, i) => x.data[at + i]!)), at);
  return { data, shape: [...x.shape] };
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

export function layerNorm(x: Numbers, weight: Numbers, bias: Numbers, epsilon: number): Rows {
  return mapRows(x, (row) => {
    const centre = mean(row);
    const deviation = Math.sqrt(mean(row.map((value) => (value - centre) ** 2)) + epsilon);
    return row.map((value, i) => ((value - centre) / deviation) * weight.data[i]! + bias.data[i]!);
  });
}

export function rmsNormRows(x: Numbers, weight: Numbers, epsilon: number): Rows {
  return mapRows(x, (row) => {
    const size = Math.sqrt(mean(row.map((value) => value ** 2)) + epsilon);
    return row.map((value, i) => (value / size) * weight.data[i]!);
  });
}

export function add(a: Numbers, b: Numbers): Rows {
  return { data: Float64Array.from(a.data, (value, i) => value + b.data[i]!), shape: [...a.shape] };
}

export function map(x: Numbers, f: (value: number, i: number) => number): Rows {
  return { data: Float64Array.from(x.data, f), shape: [...x.shape] };
}

/** 2/√π · ∫ exp(-t²), by Simpson's rule: slow, and plainly the definition. */
function erf(x: number): number {
  const steps = 400;
  const h = x / steps;
  let sum = 1 + Math.exp(-x * x);
  for (let i = 1; i < steps; i++) sum += (i % 2 === 1 ? 4 : 2) * Math.exp(-((i * h) ** 2));
  return (2 / Math.sqrt(Math.PI)) * (h / 3) * sum;
}

export const gelu = (x: number) => 0.5 * x * (1 + erf(x / Math.SQRT2));
export const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
export const silu = (x: number) => x / (1 + Math.exp(-x));
