/**
 * Where ONNX Runtime (onnxruntime-web 1.30, its WebAssembly build) does not do what ONNX's specification says, found by running it against the reference.
 * Excluded are all calls of the kind, by rule; single cases never are. An entry that is no longer a fault fails a test of its own.
 */
import type { OnnxChoices } from "./draw-onnx.js";

export interface PeerFault {
  what: string;
  applies(c: OnnxChoices): boolean;
}

/** The peer rejects the call. */
export const refusals: PeerFault[] = [
  { what: "the window of opset 25 is not known", applies: (c) => c.left >= 0 || c.right >= 0 },
  { what: "a scale that is negative is refused", applies: (c) => c.scale !== undefined && c.scale <= 0 },
];

/** The peer rejects the call if the mask turns out to be shorter than the keys (ONNX pads it). */
export const refusesShortMasks = true;

/** The peer computes something else. */
export const wrongResults: PeerFault[] = [
  {
    what: "a single causal query with a past sees all new keys, also those after it",
    applies: (c) => c.isCausal && c.queries === 1 && c.past !== undefined && c.newKeys > 1,
  },
];

/** In qk_matmul_output_mode 2 hidden scores are the lowest float32 (or below it by a bias) where ONNX says -Infinity. */
export function hiddenScore(score: number): number {
  return score < -1e30 ? Number.NEGATIVE_INFINITY : score;
}
