/** Layout of `RotaryBlock` (src/bindings/rotary_block.h): index of each 4-byte word. A test compares the two files. */
export const RotaryBlock = {
  x: 0,
  y: 1,
  xBatchStride: 2,
  xHeadStride: 3,
  xRowStride: 4,
  yBatchStride: 5,
  yHeadStride: 6,
  yRowStride: 7,
  batchSize: 8,
  numHeads: 9,
  seqLen: 10,
  headDim: 11,
  /** First word of the `RotaryTableBlock` inside: cos, sin, number of rows, rotary dim, interleaved. */
  table: 12,
  /** First word of the `RotaryPositionsBlock` inside: rows, batch stride. */
  positions: 17,
} as const;

/** Number of words. */
export const ROTARY_BLOCK_WORDS = 19;
