/** ONNX's TensorScatter (opset 24): writes new rows into a cache at a place of its own for each batch row. */
import { checkOptionNames, describeValue, fail, formatShape } from "./errors.js";
import { elementsOf, tensorLike, type FloatInput, type OutputLike } from "./onnx-tensors.js";
import { checkInstance, readInteger, readIntegers, type IntegersLike } from "./onnx-values.js";
import type { Attention } from "./instance.js";
import { readTensor } from "./operands.js";
import type { FloatTensor } from "./tensor.js";

/** Inputs of ONNX's TensorScatter. */
export interface TensorScatterInputs {
  /** [batch, ..., max_sequence, ...]: the sequence is the axis that the attribute `axis` names. */
  readonly past_cache: FloatInput;
  /** Of past_cache's shape but for the sequence axis, which is at most as long; of its element type. */
  readonly update: FloatInput;
  /** Where the update of each batch row begins [batch]. Default: 0. */
  readonly write_indices?: IntegersLike | undefined;
}

/** Attributes of ONNX's TensorScatter. For each one only `undefined` means "not given". */
export interface TensorScatterAttributes {
  /** The sequence axis, not 0; negative ones count from the end. Default: -2. */
  readonly axis?: number | bigint | undefined;
  /** `"linear"`: the update must end within the cache. `"circular"`: it wraps round. Default: `"linear"`. */
  readonly mode?: string | undefined;
}

/** Outputs of ONNX's TensorScatter. */
export interface TensorScatterOutputs<Inputs extends TensorScatterInputs = TensorScatterInputs> {
  /** past_cache with the update written in: a new array that belongs to the caller. */
  present_cache: OutputLike<Inputs["past_cache"]>;
}

const INPUT_NAMES: ReadonlySet<string> = new Set(["past_cache", "update", "write_indices"]);
const ATTRIBUTE_NAMES: ReadonlySet<string> = new Set(["axis", "mode"]);

/**
 * ONNX's TensorScatter: present[b, ..., write_indices[b] + s, ...] = update[b, ..., s, ...], everything else as in past_cache.
 *
 * @param attn - What `loadAttention` gives. Nothing is computed with it; it stands here because it does in the other operators.
 * @param inputs - See {@link TensorScatterInputs}; none is changed.
 * @param attributes - See {@link TensorScatterAttributes}.
 * @throws AttentionError whose `argument` is ONNX's name: `"shape"`, `"dtype"` or `"option"` (an update that would leave the cache in mode "linear").
 */
export function tensorScatter<Inputs extends TensorScatterInputs>(
  attn: Attention,
  inputs: Inputs,
  attributes: TensorScatterAttributes = {},
): TensorScatterOutputs<Inputs> {
  checkInstance(attn);
  checkOptionNames(inputs, INPUT_NAMES, "inputs");
  checkOptionNames(attributes, ATTRIBUTE_NAMES, "attributes");
  const cache = readTensor(inputs.past_cache, "inputs.past_cache");
  const update = readTensor(inputs.update, "inputs.update");
  const { mode = "linear" } = attributes;
  if (mode !== "linear" && mode !== "circular") fail("option", "attributes.mode", '"linear" or "circular"', describeValue(mode));
  const rank = cache.shape.length;
  if (rank < 2) fail("shape", "inputs.past_cache", "2 or more axes, the first of them the batch", `shape ${formatShape(cache.shape)}`);
  const axis = readAxis(attributes.axis, rank);
  if (update.dtype !== cache.dtype) fail("dtype", "inputs.update", `${cache.dtype} like past_cache`, update.dtype);

  const shape = Array.from(cache.shape);
  const room = shape[axis]!;
  const fits = update.shape.length === rank && shape.every((size, i) => i === axis || update.shape[i] === size);
  const count = update.shape[axis] ?? 0;
  if (!fits || count > room) {
    const expected = shape.map((size, i) => (i === axis ? `at most ${size}` : String(size))).join(", ");
    fail("shape", "inputs.update", `shape [${expected}]`, formatShape(update.shape));
  }
  const starts = readStarts(inputs.write_indices, shape[0]!, mode === "circular" ? 2 ** 53 - 1 : room - count);

  const from = elementsOf(update);
  const to = elementsOf(cache).slice();
  const width = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const middle = shape.slice(1, axis).reduce((product, size) => product * size, 1);
  for (let outer = 0; outer < shape[0]! * middle; outer++) {
    const start = starts[Math.floor(outer / middle)]!;
    for (let s = 0; s < count; s++) {
      const source = (outer * count + s) * width;
      to.set(from.subarray(source, source + width), (outer * room + ((start + s) % room)) * width);
    }
  }
  const present_cache: FloatTensor = tensorLike(to, cache, shape);
  return { present_cache } as unknown as TensorScatterOutputs<Inputs>;
}

function readAxis(value: unknown, rank: number): number {
  const given = value === undefined ? -2 : readInteger(value, "attributes.axis", -rank, rank - 1);
  const axis = given < 0 ? given + rank : given;
  if (axis === 0) fail("option", "attributes.axis", "an axis other than the batch's", describeValue(given));
  return axis;
}

function readStarts(value: unknown, batch: number, high: number): readonly number[] {
  if (value === undefined) return new Array<number>(batch).fill(0);
  const { values, shape } = readIntegers(value, "inputs.write_indices", 0, high);
  if (shape.length !== 1 || values.length !== batch)
    fail("shape", "inputs.write_indices", `shape [${batch}] (batch ${batch})`, formatShape(shape));
  return values;
}
