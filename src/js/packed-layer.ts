/** Weights of a layer in WASM memory, in the form that the matrix kernel reads: one area, made once. */
import type { Engine } from "./engine.js";
import { failWith } from "./errors.js";
import { Status } from "./glue-module.js";
import type { LayerParts, LayerSizes, WeightMatrix, WeightVector } from "./layer-weights.js";
import { staged } from "./memory.js";
import { locateOperand, placeRaw, rawBytes } from "./operands.js";
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

function pack(engine: Engine, { matrix, bias, numGroups, groupDim }: Packing, target: number, purpose: string): void {
  const { memory } = engine;
  const { operand } = matrix;
  const block = packBlock(engine);
  locateOperand(engine, operand);
  const biasBytes = bias === undefined ? 0 : staged(4 * bias.values.length);
  const base = memory.stage(biasBytes + rawBytes(operand), purpose);
  if (bias !== undefined) memory.writeFloat32(base, bias.values);
  const data = placeRaw(engine, operand, base + biasBytes) + matrix.offset * (operand.dtype === "float32" ? 4 : 2);
  const { words } = memory;
  const word = block >>> 2;
  words[word + Word.data] = data;
  words[word + Word.type] = matrix.type;
  words[word + Word.numGroups] = numGroups;
  words[word + Word.groupDim] = groupDim;
  words[word + Word.inDim] = matrix.inDim;
  words[word + Word.outStride] = matrix.outStride;
  words[word + Word.inStride] = matrix.inStride;
  words[word + Word.bias] = bias === undefined ? 0 : base;
  words[word + Word.packed] = target;
  const status = engine.glue.packMatrix(block);
  if (status !== Status.ok)
    failWith("shape", `${operand.argument}: the core refused the matrix (status ${status})`, { argument: operand.argument });
}
