/** Layout of `SelfAttentionBlock` (src/bindings/self_attention_block.h): index of each 4-byte word. A test compares the two files. */
import { ATTENTION_BLOCK_WORDS } from "./attention-block.js";

export const SelfAttentionBlock = {
  x: 0,
  keyX: 1,
  valueX: 2,
  xDim: 3,
  keyXDim: 4,
  valueXDim: 5,
  seqLenNew: 6,
  packedQuery: 7,
  packedKey: 8,
  packedValue: 9,
  packedOutput: 10,
  output: 11,
  outputDim: 12,
  queryNorm: 13,
  keyNorm: 14,
  normEpsilon: 15,
  rotaryCos: 16,
  rotarySin: 17,
  rotaryNumRows: 18,
  rotaryDim: 19,
  rotaryInterleaved: 20,
  queryPositionsRows: 21,
  queryPositionsBatchStride: 22,
  keyPositionsRows: 23,
  keyPositionsBatchStride: 24,
  cacheKey: 25,
  cacheValue: 26,
  cacheType: 27,
  cacheCapacity: 28,
  cacheLengths: 29,
  cacheStart: 30,
  newLengths: 31,
  /** Read and written by the call. */
  cacheFinite: 32,
  extraKey: 33,
  extraValue: 34,
  traceQuery: 35,
  traceKey: 36,
  traceValue: 37,
  traceScores: 38,
  traceScaledScores: 39,
  traceMaskedScores: 40,
  traceWeights: 41,
  traceContext: 42,
  /** First word of the `AttentionBlock` inside. */
  attention: 43,
} as const;

/** Number of words. */
export const SELF_ATTENTION_BLOCK_WORDS = SelfAttentionBlock.attention + ATTENTION_BLOCK_WORDS;
