/** Layouts of `PackBlock` and `ProjectionBlock` (src/bindings/projection_block.h): index of each 4-byte word. A test compares the two files. */
export const PackBlock = {
  data: 0,
  type: 1,
  numGroups: 2,
  groupDim: 3,
  inDim: 4,
  outStride: 5,
  inStride: 6,
  bias: 7,
  packed: 8,
} as const;

export const ProjectionBlock = {
  x: 0,
  xBatchStride: 1,
  xRowStride: 2,
  packed: 3,
  y: 4,
  yBatchStride: 5,
  yRowStride: 6,
  yGroupStride: 7,
  batchSize: 8,
  rows: 9,
  numGroups: 10,
  groupDim: 11,
  inDim: 12,
} as const;

/** Number of words. */
export const PACK_BLOCK_WORDS = 9;
export const PROJECTION_BLOCK_WORDS = 13;

/** `attn::WeightType`. */
export const WeightType = { f32: 0, f16: 1, bf16: 2 } as const;
