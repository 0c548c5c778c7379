/** Layouts of `KvCacheBlock` and `KvAppendBlock` (src/bindings/kv_cache_block.h): index of each 4-byte word. A test compares the two files. */
export const KvCacheBlock = {
  key: 0,
  value: 1,
  type: 2,
  batchSize: 3,
  numKvHeads: 4,
  capacity: 5,
  headDim: 6,
  valueDim: 7,
  lengths: 8,
  start: 9,
} as const;

export const KV_CACHE_BLOCK_WORDS = 10;

/** Begins with the words of the cache. */
export const KvAppendBlock = {
  key: 10,
  value: 11,
  keyBatchStride: 12,
  keyHeadStride: 13,
  keyRowStride: 14,
  valueBatchStride: 15,
  valueHeadStride: 16,
  valueRowStride: 17,
  sourceType: 18,
  seqLen: 19,
  newLengths: 20,
  /** First word of the `RotaryTableBlock` inside. */
  rotary: 21,
  /** First word of the `RotaryPositionsBlock` inside. */
  positions: 26,
  /** Read and written by the call. */
  finite: 28,
} as const;

/** Number of words. */
export const KV_APPEND_BLOCK_WORDS = 29;
