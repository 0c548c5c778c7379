/** Types of measure.mjs. */
import type { Attention } from "attention-wasm";

export interface AccuracyCase {
  kind: string;
  queries: number;
  batch: number;
  keys: number;
  scoreSize: number;
}
export interface AccuracyInputs {
  query: Float32Array;
  key: Float32Array;
  value: Float32Array;
  scale: number;
}
export declare const cases: AccuracyCase[];
export declare function makeInputs(which: AccuracyCase, seed?: number): AccuracyInputs;
export declare function computeWith(attn: Attention, which: AccuracyCase, inputs: AccuracyInputs): Float32Array;
export declare function computePlainly(which: AccuracyCase, inputs: AccuracyInputs, round: (x: number) => number): Float64Array;
export declare function errors(actual: ArrayLike<number>, exact: ArrayLike<number>): { largest: number; mean: number };
export declare function exponentialErrors(attn: Attention): { relative: number; absolute: number };
