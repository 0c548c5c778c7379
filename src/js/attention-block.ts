/** Layout of `AttentionBlock` (src/bindings/attention_block.h): index of each 4-byte word. A test compares the two files. */
export const AttentionBlock = {
  query: 0,
  key: 1,
  value: 2,
  output: 3,
  queryBatchStride: 4,
  queryHeadStride: 5,
  queryRowStride: 6,
  keyBatchStride: 7,
  keyHeadStride: 8,
  keyRowStride: 9,
  valueBatchStride: 10,
  valueHeadStride: 11,
  valueRowStride: 12,
  outputBatchStride: 13,
  outputHeadStride: 14,
  outputRowStride: 15,
  kvType: 16,
  kvFinite: 17,
  batchSize: 18,
  numHeads: 19,
  numKvHeads: 20,
  seqLenQ: 21,
  seqLenK: 22,
  headDim: 23,
  valueDim: 24,
  scale: 25,
  softcap: 26,
  causal: 27,
  windowLeft: 28,
  windowRight: 29,
  queryOffset: 30,
  queryOffsets: 31,
  keyLengths: 32,
  mask: 33,
  maskBatchStride: 34,
  maskHeadStride: 35,
  maskQueryStride: 36,
  maskKeyStride: 37,
  bias: 38,
  biasBatchStride: 39,
  biasHeadStride: 40,
  biasQueryStride: 41,
  biasKeyStride: 42,
  alibiSlopes: 43,
  sinks: 44,
  lse: 45,
  matrix: 46,
  matrixStage: 47,
  matrixHeads: 48,
  numMatrixHeads: 49,
  matrixMean: 50,
  scratchBytes: 51,
} as const;

/** Number of words. */
export const ATTENTION_BLOCK_WORDS = 52;

/** `attn::MatrixStage`. */
export const MatrixStage = { none: -1, scaled: 0, softcapped: 1, masked: 2, weights: 3 } as const;

/** `attn::KvType`. */
export const KvType = { f32: 0, f16: 1 } as const;
