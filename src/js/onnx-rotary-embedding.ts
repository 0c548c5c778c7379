/** ONNX's RotaryEmbedding (opset 23). */
import { checkOptionNames, fail, formatShape } from "./errors.js";
import type { Attention } from "./instance.js";
import { type FloatInput, type OutputLike, reshaped } from "./onnx-tensors.js";
import { checkInstance, readFlag, readHeads, readInteger, readIntegers, type IntegersLike } from "./onnx-values.js";
import { readTensor, type Operand } from "./operands.js";
import type { TensorLike } from "./tensor.js";

/** Inputs of ONNX's RotaryEmbedding. B batch, H heads, S sequence, D head_size, R the width that is rotated. */
export interface RotaryEmbeddingInputs {
  /** [B, H, S, D], or [B, S, H · D] with the attribute num_heads. */
  readonly input: FloatInput;
  /** Cosines: [max_position, R / 2] with position_ids, else one row for each position [B, S, R / 2]. */
  readonly cos_cache: FloatInput;
  /** Sines, of the same shape; independent of the cosines. */
  readonly sin_cache: FloatInput;
  /** Row of the caches for each position [B, S]. Default: none, see cos_cache. */
  readonly position_ids?: IntegersLike | undefined;
}

/** Attributes of ONNX's RotaryEmbedding. For each one only `undefined` means "not given". */
export interface RotaryEmbeddingAttributes {
  /** 1: pairs are (2i, 2i + 1). 0: pairs are (i, i + R / 2). Default: 0. */
  readonly interleaved?: number | boolean | bigint | undefined;
  /** H: needed for rank 3; for rank 4 it may be given and must agree. */
  readonly num_heads?: number | bigint | undefined;
  /** R, even and at most D: the first R elements of each head are rotated, the rest is copied. Default: 0 = all. */
  readonly rotary_embedding_dim?: number | bigint | undefined;
}

/** Outputs of ONNX's RotaryEmbedding. */
export interface RotaryEmbeddingOutputs<Inputs extends RotaryEmbeddingInputs = RotaryEmbeddingInputs> {
  /** Of input's shape and element type: a new array that belongs to the caller. */
  output: OutputLike<Inputs["input"]>;
}

const INPUT_NAMES: ReadonlySet<string> = new Set(["input", "cos_cache", "sin_cache", "position_ids"]);
const ATTRIBUTE_NAMES: ReadonlySet<string> = new Set(["interleaved", "num_heads", "rotary_embedding_dim"]);

/**
 * ONNX's RotaryEmbedding: each pair (x1, x2) of a head becomes (cos · x1 - sin · x2, sin · x1 + cos · x2).
 *
 * @param attn - What `loadAttention` gives.
 * @param inputs - See {@link RotaryEmbeddingInputs}; none is changed.
 * @param attributes - See {@link RotaryEmbeddingAttributes}.
 * @throws AttentionError whose `argument` is ONNX's name: `"shape"`, `"dtype"` or `"option"` (a position beyond the caches, an odd width).
 */
export function rotaryEmbedding<Inputs extends RotaryEmbeddingInputs>(
  attn: Attention,
  inputs: Inputs,
  attributes: RotaryEmbeddingAttributes = {},
): RotaryEmbeddingOutputs<Inputs> {
  checkInstance(attn);
  checkOptionNames(inputs, INPUT_NAMES, "inputs");
  checkOptionNames(attributes, ATTRIBUTE_NAMES, "attributes");
  const isInterleaved = readFlag(attributes.interleaved, "attributes.interleaved");
  const input = readTensor(inputs.input, "inputs.input");
  const sizes = readSizes(input, readHeads(attributes.num_heads, "attributes.num_heads"));
  const rotated = readRotaryDim(attributes.rotary_embedding_dim, sizes.width);
  const cosines = readTensor(inputs.cos_cache, "inputs.cos_cache");
  const sines = readTensor(inputs.sin_cache, "inputs.sin_cache");
  const positions = readPositions(inputs.position_ids, cosines, sines, sizes, rotated / 2);

  const { batch, heads, length, width, isPositionsFirst } = sizes;
  const x = reshaped(input, isPositionsFirst ? [batch, length, heads, width] : Array.from(input.shape));
  const output = attn.rotaryEmbedding(x as TensorLike, {
    cos: reshaped(cosines, Array.from(cosines.shape)) as TensorLike,
    sin: reshaped(sines, Array.from(sines.shape)) as TensorLike,
    positions,
    interleaved: isInterleaved,
    rotaryDim: rotated,
    layout: isPositionsFirst ? "bshd" : "bhsd",
  });
  return { output: { ...output, shape: Array.from(input.shape) } } as unknown as RotaryEmbeddingOutputs<Inputs>;
}

interface RotarySizes {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
  readonly isPositionsFirst: boolean;
}

function readSizes(input: Operand, heads: number | undefined): RotarySizes {
  const { shape } = input;
  if (shape.length === 4) {
    if (heads !== undefined && heads !== shape[1])
      fail("shape", "inputs.input", `${heads} heads, as num_heads says`, `shape ${formatShape(shape)}`);
    return { batch: shape[0]!, heads: shape[1]!, length: shape[2]!, width: shape[3]!, isPositionsFirst: false };
  }
  if (shape.length !== 3)
    fail(
      "shape",
      "inputs.input",
      "[batch, heads, sequence, head_size] or [batch, sequence, heads · head_size]",
      `shape ${formatShape(shape)}`,
    );
  if (heads === undefined) fail("option", "attributes.num_heads", "a number of heads, which an input of rank 3 needs", "undefined");
  if (shape[2]! % heads !== 0) fail("shape", "inputs.input", `a last axis that num_heads ${heads} divides`, `shape ${formatShape(shape)}`);
  return { batch: shape[0]!, heads, length: shape[1]!, width: shape[2]! / heads, isPositionsFirst: true };
}

function readRotaryDim(value: unknown, width: number): number {
  const given = value === undefined ? 0 : readInteger(value, "attributes.rotary_embedding_dim", 0, width);
  const rotated = given === 0 ? width : given;
  if (rotated % 2 !== 0) {
    fail(
      "option",
      "attributes.rotary_embedding_dim",
      "an even number: pairs are rotated",
      given === 0 ? `0, which means head_size ${width}` : String(given),
    );
  }
  return rotated;
}

/** Checks the caches, and gives the rows of them that belong to the positions; undefined where they are given position by position. */
function readPositions(
  positions: unknown,
  cos: Operand,
  sin: Operand,
  { batch, length }: RotarySizes,
  half: number,
): readonly number[] | undefined {
  const hasIds = positions !== undefined;
  const { shape } = cos;
  const fits = hasIds
    ? shape.length === 2 && shape[1] === half
    : shape.length === 3 && shape[0] === batch && shape[1] === length && shape[2] === half;
  if (!fits) {
    const expected = hasIds
      ? `shape [max_position, ${half}] (rotated width / 2)`
      : `shape [${batch}, ${length}, ${half}] (batch, sequence, rotated width / 2)`;
    fail("shape", "inputs.cos_cache", expected, formatShape(shape));
  }
  if (sin.shape.length !== shape.length || Array.from(shape).some((size, axis) => size !== sin.shape[axis])) {
    fail("shape", "inputs.sin_cache", `shape ${formatShape(shape)} like cos_cache`, formatShape(sin.shape));
  }
  if (!hasIds) return undefined;
  const ids = readIntegers(positions, "inputs.position_ids", 0, shape[0]! - 1);
  if (ids.shape.length !== 2 || ids.shape[0] !== batch || ids.shape[1] !== length) {
    fail("shape", "inputs.position_ids", `shape [${batch}, ${length}] (batch, sequence)`, formatShape(ids.shape));
  }
  return ids.values;
}
