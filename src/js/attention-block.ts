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
  batchSize: 17,
  numHeads: 18,
  numKvHeads: 19,
  seqLenQ: 20,
  seqLenK: 21,
  headDim: 22,
  valueDim: 23,
  scale: 24,
  softcap: 25,
  causal: 26,
  windowLeft: 27,
  windowRight: 28,
  queryOffset: 29,
  queryOffsets: 30,
  keyLengths: 31,
  mask: 32,
  maskBatchStride: 33,
  maskHeadStride: 34,
  maskQueryStride: 35,
  maskKeyStride: 36,
  bias: 37,
  biasBatchStride: 38,
  biasHeadStride: 39,
  biasQueryStride: 40,
  biasKeyStride: 41,
  alibiSlopes: 42,
  sinks: 43,
  lse: 44,
  matrix: 45,
  matrixStage: 46,
  matrixHeads: 47,
  numMatrixHeads: 48,
  matrixMean: 49,
  scratchBytes: 50,
} as const;

/** Number of words. */
export const ATTENTION_BLOCK_WORDS = 51;

/** `attn::MatrixStage`. */
export const MatrixStage = { none: -1, scaled: 0, softcapped: 1, masked: 2, weights: 3 } as const;

/** `attn::KvType`. */
export const KvType = { f32: 0, f16: 1 } as const;
