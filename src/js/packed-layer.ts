/** Weights of a layer in WASM memory, in the form that the matrix kernel reads: one area, made once. */
import type { Engine } from "./engine.js";
import { failWith } from "./errors.js";
import { Status } from "./glue-module.js";
import { sliceOutputs, type LayerParts, type LayerSizes, type WeightMatrix, type WeightVector } from "./layer-weights.js";
import { staged } from "./memory.js";
import { locateOperand } from "./operands.js";
import { PACK_BLOCK_WORDS, PackBlock as Word } from "./projection-block.js";

/** Addresses are 0 where a part is not there. */
export interface PackedLayer {
  readonly sizes: LayerSizes;
  /** The area that holds everything: to be released by the owner. */
  readonly pointer: number;
  readonly bytes: number;
  readonly query: number;
  readonly key: number;
  readonly value: number;
  readonly output: number;
  readonly queryNorm: number;
  readonly keyNorm: number;
  readonly extraKey: number;
  readonly extraValue: number;
  readonly normEpsilon: number;
}

/** How a matrix is cut into groups of outputs: heads, or the whole width. */
interface Packing {
  readonly matrix: WeightMatrix;
  readonly bias: WeightVector | undefined;
  readonly numGroups: number;
  readonly groupDim: number;
  readonly floats: number;
}

/** Packs checked parts into a new area. Throws "memory"; nothing is held then. */
export function packLayer(engine: Engine, parts: LayerParts, sizes: LayerSizes, normEpsilon: number, purpose: string): PackedLayer {
  const { numHeads, numKvHeads, headDim, valueDim, outputDim } = sizes;
  const plan = (matrix: WeightMatrix, bias: WeightVector | undefined, numGroups: number, groupDim: number): Packing => {
    const floats = engine.glue.packedElements(numGroups, groupDim, matrix.inDim);
    if (floats === 0)
      failWith("shape", `${matrix.operand.argument}: the matrix is too large to be packed`, { argument: matrix.operand.argument });
    return { matrix, bias, numGroups, groupDim, floats };
  };
  const packings = [
    plan(parts.query, parts.queryBias, numHeads, headDim),
    plan(parts.key, parts.keyBias, numKvHeads, headDim),
    plan(parts.value, parts.valueBias, numKvHeads, valueDim),
    plan(parts.output, parts.outputBias, 1, outputDim),
  ];
  const vectors = [parts.queryNorm, parts.keyNorm, parts.extraKey, parts.extraValue];
  const bytes =
    packings.reduce((sum, packing) => sum + staged(4 * packing.floats), 0) +
    vectors.reduce((sum, vector) => sum + (vector === undefined ? 0 : staged(4 * vector.values.length)), 0);

  const pointer = engine.memory.allocate(bytes, purpose);
  try {
    let next = pointer;
    const matrices = packings.map((packing) => {
      const at = next;
      next += staged(4 * packing.floats);
      pack(engine, packing, at, purpose);
      return at;
    });
    const places = vectors.map((vector) => {
      if (vector === undefined) return 0;
      const at = next;
      next += staged(4 * vector.values.length);
      engine.memory.writeFloat32(at, vector.values);
      return at;
    });
    return {
      sizes,
      pointer,
      bytes,
      normEpsilon,
      query: matrices[0]!,
      key: matrices[1]!,
      value: matrices[2]!,
      output: matrices[3]!,
      queryNorm: places[0]!,
      keyNorm: places[1]!,
      extraKey: places[2]!,
      extraValue: places[3]!,
    };
  } catch (error) {
    engine.memory.release(pointer);
    throw error;
  }
}

const blocks = new WeakMap<Engine, number>();

function packBlock(engine: Engine): number {
  let block = blocks.get(engine);
  if (block === undefined) {
    block = engine.memory.createBlock(4 * PACK_BLOCK_WORDS);
    blocks.set(engine, block);
  }
  return block;
}

/** Raw weights that are in the staging area at once: a large matrix goes through in pieces, so that the memory does not grow by its size. */
const PIECE_BYTES = 2 ** 20;

function pack(engine: Engine, packing: Packing, target: number, purpose: string): void {
  const { matrix, bias, numGroups, groupDim, floats } = packing;
  locateOperand(engine, matrix.operand);
  const panel = engine.glue.packedElements(1, 1, 1) / 2; // outputs that are packed together
  const rowBytes = matrix.inDim * bytesPerElement(matrix);
  // Whole panels lie one after the other in the packed form, so what begins with a panel can be packed by itself.
  const rows = Math.max(panel, Math.floor(PIECE_BYTES / rowBytes / panel) * panel);
  if (rows >= matrix.outDim) {
    packPiece(engine, matrix, bias?.values, numGroups, groupDim, target, purpose);
    return;
  }
  const groupFloats = floats / numGroups;
  for (let group = 0; group < numGroups; group++) {
    for (let first = 0; first < groupDim; first += rows) {
      const at = group * groupDim + first;
      const count = Math.min(rows, groupDim - first);
      const place = target + 4 * (group * groupFloats + (first / panel) * panel * (matrix.inDim + 1));
      packPiece(engine, sliceOutputs(matrix, at, count), bias?.values.subarray(at, at + count), 1, count, place, purpose);
    }
  }
}

function bytesPerElement({ operand }: WeightMatrix): number {
  return operand.dtype === "float32" ? 4 : 2;
}

function packPiece(
  engine: Engine,
  matrix: WeightMatrix,
  bias: Float32Array | undefined,
  numGroups: number,
  groupDim: number,
  target: number,
  purpose: string,
): void {
  const { memory } = engine;
  const { operand, outDim, inDim } = matrix;
  const block = packBlock(engine);
  const biasBytes = bias === undefined ? 0 : staged(4 * bias.length);
  const isInMemory = operand.pointer !== 0;
  const base = memory.stage(biasBytes + (isInMemory ? 0 : staged(outDim * inDim * bytesPerElement(matrix))), purpose);
  if (bias !== undefined) memory.writeFloat32(base, bias);
  const data = isInMemory ? operand.pointer + matrix.offset * bytesPerElement(matrix) : copyPiece(engine, matrix, base + biasBytes);
  const { words } = memory;
  const word = block >>> 2;
  words[word + Word.data] = data;
  words[word + Word.type] = matrix.type;
  words[word + Word.numGroups] = numGroups;
  words[word + Word.groupDim] = groupDim;
  words[word + Word.inDim] = inDim;
  // A copy keeps the order of the axes, without what lies between the rows.
  words[word + Word.outStride] = isInMemory ? matrix.outStride : matrix.inStride === 1 ? inDim : 1;
  words[word + Word.inStride] = isInMemory ? matrix.inStride : matrix.inStride === 1 ? 1 : outDim;
  words[word + Word.bias] = bias === undefined ? 0 : base;
  words[word + Word.packed] = target;
  const status = engine.glue.packMatrix(block);
  if (status !== Status.ok)
    failWith("shape", `${operand.argument}: the core refused the matrix (status ${status})`, { argument: operand.argument });
}

/** Copies the outputs of a piece to `at`: whole rows [out, in] at once, or row by row the columns of [in, out]. */
function copyPiece(engine: Engine, matrix: WeightMatrix, at: number): number {
  const { memory } = engine;
  const { operand, offset, outDim, inDim, inStride } = matrix;
  const data = operand.data as unknown as { subarray(begin: number, end: number): Float32Array & Uint16Array };
  const write = (to: number, begin: number, count: number): void => {
    const part = data.subarray(begin, begin + count);
    if (operand.dtype === "float32") memory.writeFloat32(to, part);
    else memory.writeHalf(to, part);
  };
  if (inStride === 1) write(at, offset, outDim * inDim);
  else for (let i = 0; i < inDim; i++) write(at + i * outDim * bytesPerElement(matrix), offset + i * inStride, outDim);
  return at;
}
