/** Rotary positions (RoFormer, arXiv:2104.09864): the public function, and what the layer and the cache share with it. */
import type { AttentionBuffer } from "./buffer.js";
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failWith, formatShape } from "./errors.js";
import { Status } from "./glue-module.js";
import { staged } from "./memory.js";
import { float32Bytes, locateOperand, placeFloat32, readResult, readTensor, resultBytes, resultKind, type Operand } from "./operands.js";
import { ROTARY_BLOCK_WORDS, RotaryBlock as Word } from "./rotary-block.js";
import { checkBase, checkScaling, frequencies, type RotaryFrequencies, type RotaryScaling } from "./rotary-scaling.js";
import { checkOverlap, finishTarget, readTarget, type Layout } from "./scaled-dot-product-attention.js";
import { checkAddressable } from "./sizes.js";
import type { FloatTensor, TensorLike } from "./tensor.js";

/** How rotary positions turn queries and keys. For each option only `undefined` means "not given". */
export interface RotaryOptions {
  /** Angle of pair i at position p: p · base^(-2i / rotaryDim). Default: 10000. */
  base?: number | undefined;
  /** The first `rotaryDim` elements of a head are turned, the others stay; even. Default: all, or twice the columns of `cos`. */
  rotaryDim?: number | undefined;
  /**
   * Which elements make a pair: `false`, "halves", (i, i + rotaryDim / 2) as in GPT-NeoX and Hugging Face's Llama; `true`, "interleaved", (2i, 2i + 1) as
   * in RoFormer, GPT-J and the original Llama. Default: `false`.
   */
  interleaved?: boolean | undefined;
  /** How the frequencies are stretched for long texts, see {@link RotaryScaling}. Default: not at all. */
  scaling?: RotaryScaling | undefined;
  /** Angle per position of each pair [rotaryDim / 2], instead of `base` and `scaling`. */
  inverseFrequencies?: ArrayLike<number> | undefined;
  /**
   * Tables instead of `base`: cos and sin [positions, rotaryDim / 2], whose rows are chosen by the positions; or [batch, seq, rotaryDim / 2] (batch may
   * be 1), whose rows belong to the elements as they stand. The two need not fit together.
   */
  cos?: TensorLike | undefined;
  sin?: TensorLike | undefined;
}

/** Positions of a sequence: that of the first element, or one for each: [seq], or [batch, seq] as a tensor's data or nested arrays. */
export type PositionsLike =
  | number
  | ArrayLike<number>
  | readonly (readonly number[])[]
  | { readonly data: ArrayLike<number> | ArrayLike<bigint>; readonly shape: readonly number[] };

/** Options of `rotaryEmbedding`. For each one only `undefined` means "not given". */
export interface RotaryEmbeddingOptions extends RotaryOptions {
  /** Position of the first element, or of each, see {@link PositionsLike}; whole numbers of at least 0. Default: 0, 1, 2, … */
  positions?: PositionsLike | undefined;
  /** Order of the axes of x, see {@link Layout}. Default: `"bhsd"`. */
  layout?: Layout | undefined;
  /** Where the result goes: a buffer or a tensor of yours, of the shape and element type of x; not x itself. Default: a new tensor. */
  out?: TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16"> | undefined;
}

const ROTARY_NAMES = ["base", "rotaryDim", "interleaved", "scaling", "inverseFrequencies", "cos", "sin"];
const ROTARY_OPTIONS: ReadonlySet<string> = new Set(ROTARY_NAMES);
const EMBEDDING_OPTIONS: ReadonlySet<string> = new Set([...ROTARY_NAMES, "positions", "layout", "out"]);

// ---- options -------------------------------------------------------------------------------------------------------

/** {@link RotaryOptions} after checking. */
export interface CheckedRotary {
  readonly rotaryDim: number;
  readonly interleaved: boolean;
  /** Given tables. */
  readonly cos: Operand | undefined;
  readonly sin: Operand | undefined;
  /** Computed angles: what they are computed from. */
  readonly base: number;
  readonly scaling: RotaryScaling | undefined;
  readonly inverse: Float64Array | undefined;
  /** The same angles have the same name. */
  readonly name: string;
}

/** Reads and checks the options against the width of a head. Throws; nothing is written. */
export function readRotary(options: RotaryOptions, argument: string, headDim: number): CheckedRotary {
  checkOptionNames(options, ROTARY_OPTIONS, argument);
  return readRotaryFields(options, argument, headDim);
}

function readRotaryFields(options: RotaryOptions, argument: string, headDim: number): CheckedRotary {
  const { base, rotaryDim: width, interleaved, scaling, inverseFrequencies, cos, sin } = options;
  if (interleaved !== undefined && typeof interleaved !== "boolean")
    fail("option", `${argument}.interleaved`, "true or false", describeValue(interleaved));
  const hasTables = cos !== undefined || sin !== undefined;
  if (hasTables && (cos === undefined || sin === undefined))
    fail("option", `${argument}.${cos === undefined ? "cos" : "sin"}`, "a table beside the other one", "nothing");
  const sources = [base !== undefined || scaling !== undefined, inverseFrequencies !== undefined, hasTables].filter(Boolean);
  if (sources.length > 1)
    failWith("option", `${argument}: expected either base and scaling, or inverseFrequencies, or cos and sin`, { argument });
  const tables = hasTables ? readTables(cos, sin, argument) : undefined;
  const columns = tables?.cos.shape[tables.cos.shape.length - 1];
  const rotaryDim =
    width ?? (columns !== undefined ? 2 * columns : inverseFrequencies !== undefined ? 2 * inverseFrequencies.length : headDim);
  if (!Number.isInteger(rotaryDim) || rotaryDim < 0)
    fail("option", `${argument}.rotaryDim`, "a whole, even number", describeValue(rotaryDim));
  if (rotaryDim % 2 !== 0) {
    const name = width === undefined ? "the width of a head" : `${argument}.rotaryDim`;
    fail(width === undefined ? "shape" : "option", name, "an even number: rotary positions turn pairs of elements", String(rotaryDim));
  }
  if (rotaryDim > headDim) fail("option", `${argument}.rotaryDim`, `at most the width of a head, ${headDim}`, String(rotaryDim));
  if (tables !== undefined && columns !== rotaryDim / 2) {
    fail("shape", tables.cos.argument, `${rotaryDim / 2} columns (rotaryDim ${rotaryDim} / 2)`, `shape ${formatShape(tables.cos.shape)}`);
  }
  if (base !== undefined) checkBase(base);
  if (scaling !== undefined) checkScaling(scaling, `${argument}.scaling`);
  const inverse =
    inverseFrequencies === undefined ? undefined : readFrequencies(inverseFrequencies, `${argument}.inverseFrequencies`, rotaryDim / 2);
  const from = inverse !== undefined ? inverse.join() : `${base ?? 10000} ${scaling === undefined ? "" : JSON.stringify(scaling)}`;
  return {
    rotaryDim,
    interleaved: interleaved === true,
    cos: tables?.cos,
    sin: tables?.sin,
    base: base ?? 10000,
    scaling,
    inverse,
    name: `${rotaryDim} ${from}`,
  };
}

function readTables(cosLike: unknown, sinLike: unknown, argument: string): { cos: Operand; sin: Operand } {
  const cos = readTensor(cosLike, `${argument}.cos`);
  const sin = readTensor(sinLike, `${argument}.sin`);
  if (cos.shape.length !== 2 && cos.shape.length !== 3) {
    fail("shape", cos.argument, "[positions, rotaryDim / 2] or [batch, seq, rotaryDim / 2]", `shape ${formatShape(cos.shape)}`);
  }
  if (formatShape(cos.shape) !== formatShape(sin.shape))
    fail("shape", sin.argument, `shape ${formatShape(cos.shape)} like cos`, formatShape(sin.shape));
  return { cos, sin };
}

function readFrequencies(list: ArrayLike<number>, argument: string, pairs: number): Float64Array {
  if (typeof list !== "object" || list === null || typeof list.length !== "number")
    fail("dtype", argument, "an array of numbers", describeValue(list));
  if (list.length !== pairs) fail("shape", argument, `${pairs} elements (rotaryDim ${2 * pairs} / 2)`, describeValue(list));
  const copy = Float64Array.from(list);
  if (!copy.every(Number.isFinite)) fail("option", argument, "finite numbers", "others among them");
  return copy;
}

// ---- positions -----------------------------------------------------------------------------------------------------

/** Positions of a call: [seq] for all batch rows, or [batch, seq]. */
export interface Positions {
  readonly values: Int32Array;
  readonly isPerBatch: boolean;
}

const MAX_POSITION = 2 ** 31 - 1;

/** Positions first, first + 1, … for each batch row. `firsts` has one number for all, or one per batch row. */
export function countUp(firsts: ArrayLike<number>, batchSize: number, length: number): Positions {
  let isPerBatch = false;
  for (let b = 1; b < firsts.length; b++) if (firsts[b] !== firsts[0]) isPerBatch = true;
  const rows = isPerBatch ? batchSize : 1;
  const values = new Int32Array(rows * length);
  for (let b = 0; b < rows; b++) for (let t = 0; t < length; t++) values[b * length + t] = firsts[b]! + t;
  return { values, isPerBatch };
}

/** Reads positions that a caller gives. */
export function readPositions(given: PositionsLike, argument: string, batchSize: number, length: number): Positions {
  if (typeof given === "number") {
    checkPosition(given, argument);
    checkPosition(given + Math.max(0, length - 1), argument);
    return countUp([given], batchSize, length);
  }
  let list: ArrayLike<unknown> | undefined;
  if (Array.isArray(given) && given.length > 0 && Array.isArray(given[0])) {
    const nested = given as readonly (readonly number[])[];
    if (nested.some((row) => !Array.isArray(row) || row.length !== nested[0]!.length))
      fail("shape", argument, "rows of one length", "ragged arrays");
    list = nested.flat();
  } else if (typeof given === "object" && given !== null && "data" in given) {
    list = given.data as ArrayLike<unknown>;
  } else if (Array.isArray(given) || ArrayBuffer.isView(given)) {
    list = given as ArrayLike<unknown>;
  }
  if (list === undefined || typeof list.length !== "number")
    fail("dtype", argument, "a number or an array of numbers", describeValue(given));
  if (list.length !== length && list.length !== batchSize * length) {
    fail(
      "shape",
      argument,
      `${length} elements (seq ${length}) or ${batchSize * length} (batch ${batchSize} × seq ${length})`,
      String(list.length),
    );
  }
  const values = new Int32Array(list.length);
  for (let i = 0; i < values.length; i++) {
    const element = list[i];
    const position = typeof element === "bigint" ? Number(element) : element; // int64 tensors of other libraries
    checkPosition(position, `${argument}[${i}]`);
    values[i] = position as number;
  }
  return { values, isPerBatch: list.length !== length };
}

function checkPosition(position: unknown, argument: string): void {
  if (!Number.isInteger(position) || (position as number) < 0 || (position as number) > MAX_POSITION) {
    fail("option", argument, `a whole number from 0 to ${MAX_POSITION}`, describeValue(position));
  }
}

// ---- tables --------------------------------------------------------------------------------------------------------

/** A table that is ready to be copied in, and which of its rows the queries and the keys use. */
export interface RotaryPlan {
  readonly rotary: CheckedRotary;
  /** Computed rows; undefined for given tables. */
  readonly cos: Float32Array | undefined;
  readonly sin: Float32Array | undefined;
  readonly numRows: number;
  readonly query: Positions;
  readonly key: Positions;
  readonly bytes: number;
}

/** What the core is told. Addresses of tables and positions; see RotaryTableBlock and RotaryPositionsBlock. */
export interface PlacedRotary {
  readonly cos: number;
  readonly sin: number;
  readonly numRows: number;
  readonly rotaryDim: number;
  readonly interleaved: boolean;
  readonly queryRows: number;
  readonly queryBatchStride: number;
  readonly keyRows: number;
  readonly keyBatchStride: number;
}

interface Table {
  readonly name: string;
  readonly positions: Int32Array;
  readonly cos: Float32Array;
  readonly sin: Float32Array;
}

/** The last tables: all layers of a model turn by the same angles at the same step. */
const lastTables: Table[] = [];
const KEPT_TABLES = 2;

function tableFor(rotary: CheckedRotary, positions: Int32Array): Table {
  const found = lastTables.find((table) => table.name === rotary.name && isSame(table.positions, positions));
  if (found !== undefined) return found;
  let largest = 0;
  for (let i = 0; i < positions.length; i++) largest = Math.max(largest, positions[i]!);
  const { inverseFrequencies, attentionFactor } = frequenciesFor(rotary, largest + 1);
  const pairs = rotary.rotaryDim / 2;
  const cos = new Float32Array(positions.length * pairs);
  const sin = new Float32Array(positions.length * pairs);
  for (let row = 0, at = 0; row < positions.length; row++) {
    for (let i = 0; i < pairs; i++, at++) {
      const angle = positions[row]! * inverseFrequencies[i]!; // in float64: rounded once, as cos and sin
      cos[at] = attentionFactor * Math.cos(angle);
      sin[at] = attentionFactor * Math.sin(angle);
    }
  }
  const table = { name: rotary.name, positions, cos, sin };
  lastTables.unshift(table);
  if (lastTables.length > KEPT_TABLES) lastTables.pop();
  return table;
}

let lastFrequencies: { readonly name: string; readonly length: number; readonly found: RotaryFrequencies } | undefined;

/** Frequencies for a text of this length; those of the last call are kept, as most models have one kind. */
function frequenciesFor(rotary: CheckedRotary, length: number): RotaryFrequencies {
  const at = rotary.scaling?.type === "dynamic" ? length : 0;
  if (lastFrequencies === undefined || lastFrequencies.name !== rotary.name || lastFrequencies.length !== at) {
    const found =
      rotary.inverse === undefined
        ? frequencies(rotary.rotaryDim, rotary.base, rotary.scaling, at)
        : { inverseFrequencies: rotary.inverse, attentionFactor: 1 };
    lastFrequencies = { name: rotary.name, length: at, found };
  }
  return lastFrequencies.found;
}

function isSame(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Makes the table for a call. `key` undefined: keys have the positions of the queries. Finds out whether given tables are in WASM memory.
 * Throws when a position is no row of a given table.
 */
export function planRotary(
  engine: Engine,
  rotary: CheckedRotary,
  batchSize: number,
  query: Positions,
  key: Positions | undefined,
): RotaryPlan {
  const isSelf = key === undefined || (key.isPerBatch === query.isPerBatch && isSame(key.values, query.values));
  if (rotary.cos === undefined || rotary.sin === undefined) {
    // One row for each element, in order: rows are counted, not looked up.
    const all = isSelf ? query.values : Int32Array.from([...query.values, ...key.values]);
    const { cos, sin } = tableFor(rotary, all);
    const queryRows: Positions = { values: Int32Array.from(query.values.keys()), isPerBatch: query.isPerBatch };
    const keyRows: Positions = isSelf
      ? queryRows
      : { values: Int32Array.from(key.values, (_, i) => query.values.length + i), isPerBatch: key.isPerBatch };
    const bytes = 2 * staged(4 * cos.length) + staged(4 * queryRows.values.length) + (isSelf ? 0 : staged(4 * keyRows.values.length));
    return { rotary, cos, sin, numRows: all.length, query: queryRows, key: keyRows, bytes };
  }
  const { cos, sin } = rotary;
  const pairs = rotary.rotaryDim / 2;
  const numRows = pairs === 0 ? 0 : cos.elements / pairs;
  let queryRows = query;
  let keyRows = key ?? query;
  if (cos.shape.length === 3) {
    const length = query.isPerBatch ? query.values.length / batchSize : query.values.length;
    if (!isSelf || (cos.shape[0] !== batchSize && cos.shape[0] !== 1) || cos.shape[1] !== length) {
      fail("shape", cos.argument, `[${batchSize} or 1, ${length}, ${pairs}] ([batch, seq, rotaryDim / 2])`, formatShape(cos.shape));
    }
    queryRows = keyRows = { values: Int32Array.from({ length: numRows }, (_, i) => i), isPerBatch: cos.shape[0] !== 1 };
  } else {
    for (const { values } of [queryRows, keyRows]) {
      for (let i = 0; i < values.length; i++) {
        if (values[i]! >= numRows) fail("option", "positions", `below ${numRows}, the rows of ${cos.argument}`, String(values[i]));
      }
    }
  }
  locateOperand(engine, cos);
  locateOperand(engine, sin);
  const bytes =
    float32Bytes(cos) +
    float32Bytes(sin) +
    staged(4 * queryRows.values.length) +
    (keyRows === queryRows ? 0 : staged(4 * keyRows.values.length));
  return { rotary, cos: undefined, sin: undefined, numRows, query: queryRows, key: keyRows, bytes };
}

/** Copies table and positions to `at`, `plan.bytes` bytes of the staging area. */
export function placeRotary(engine: Engine, plan: RotaryPlan, at: number): PlacedRotary {
  const { memory } = engine;
  const { rotary } = plan;
  let next = at;
  let cos: number;
  let sin: number;
  if (plan.cos !== undefined && plan.sin !== undefined) {
    memory.writeFloat32((cos = next), plan.cos);
    next += staged(4 * plan.cos.length);
    memory.writeFloat32((sin = next), plan.sin);
    next += staged(4 * plan.sin.length);
  } else {
    cos = placeFloat32(engine, rotary.cos!, next);
    next += float32Bytes(rotary.cos!);
    sin = placeFloat32(engine, rotary.sin!, next);
    next += float32Bytes(rotary.sin!);
  }
  const queryRows = next;
  memory.writeInt32(queryRows, plan.query.values);
  next += staged(4 * plan.query.values.length);
  let keyRows = queryRows;
  if (plan.key !== plan.query) memory.writeInt32((keyRows = next), plan.key.values);
  return {
    cos,
    sin,
    numRows: plan.numRows,
    rotaryDim: rotary.rotaryDim,
    interleaved: rotary.interleaved,
    queryRows,
    queryBatchStride: plan.query.isPerBatch ? 1 : 0,
    keyRows,
    keyBatchStride: plan.key.isPerBatch ? 1 : 0,
  };
}

/** Fills the words of a RotaryTableBlock. `placed` undefined: no rotation. */
export function writeRotaryTable(words: Int32Array, at: number, placed: PlacedRotary | undefined): void {
  words[at] = placed === undefined ? 0 : placed.cos;
  words[at + 1] = placed === undefined ? 0 : placed.sin;
  words[at + 2] = placed === undefined ? 0 : placed.numRows;
  words[at + 3] = placed === undefined ? 0 : placed.rotaryDim;
  words[at + 4] = placed?.interleaved === true ? 1 : 0;
}

// ---- the public function ---------------------------------------------------------------------------------------------

const blocks = new WeakMap<Engine, number>();

/** See `Attention.rotaryEmbedding` in instance.ts for what callers are told. */
export function rotaryEmbedding(engine: Engine, xLike: unknown, options: RotaryEmbeddingOptions = {}): FloatTensor {
  engine.checkAlive();
  checkOptionNames(options, EMBEDDING_OPTIONS, "options");
  const { layout, positions, out } = options;
  if (layout !== undefined && layout !== "bhsd" && layout !== "bshd")
    fail("option", "options.layout", '"bhsd" or "bshd"', describeValue(layout));
  const isPositionsFirst = layout === "bshd";
  const x = readTensor(xLike, "x");
  const rank = x.shape.length;
  if (rank < 2 || rank > 4) {
    const axes = isPositionsFirst
      ? "[batch, seq, heads, dim], [seq, heads, dim] or [seq, dim]"
      : "[batch, heads, seq, dim], [heads, seq, dim] or [seq, dim]";
    fail("shape", "x", axes, `shape ${formatShape(x.shape)}`);
  }
  const batch = rank === 4 ? x.shape[0]! : 1;
  const heads = rank === 2 ? 1 : x.shape[isPositionsFirst ? rank - 2 : rank - 3]!;
  const length = rank === 2 ? x.shape[0]! : x.shape[isPositionsFirst ? rank - 3 : rank - 2]!;
  const width = x.shape[rank - 1]!;
  const rotary = readRotaryFields(options, "options", width);
  if (positions !== undefined && rotary.cos?.shape.length === 3) {
    fail(
      "option",
      "options.positions",
      "nothing beside tables [batch, seq, rotaryDim / 2]: their rows belong to the elements as they stand",
      describeValue(positions),
    );
  }
  const at = positions === undefined ? countUp([0], batch, length) : readPositions(positions, "options.positions", batch, length);
  const plan = planRotary(engine, rotary, batch, at, undefined);
  const kind = resultKind(x);
  const shape = Array.from(x.shape);
  const target = out === undefined ? undefined : readTarget(out, shape, x.elements, kind);

  locateOperand(engine, x);
  let bytes = float32Bytes(x);
  const atRotary = bytes;
  bytes += plan.bytes;
  const atOutput = bytes;
  let outputPointer = 0;
  if (target !== undefined) {
    locateOperand(engine, target);
    if (target.pointer !== 0) {
      checkOverlap(target, [x, rotary.cos, rotary.sin]);
      if (target.dtype === "float32") outputPointer = target.pointer;
    }
  }
  if (outputPointer === 0) bytes += resultBytes(x.elements, kind);
  checkAddressable(bytes, "rotaryEmbedding");
  const base = engine.memory.stage(bytes, "rotaryEmbedding");

  let block = blocks.get(engine);
  if (block === undefined) blocks.set(engine, (block = engine.memory.createBlock(4 * ROTARY_BLOCK_WORDS)));
  const xPointer = placeFloat32(engine, x, base);
  const placed = placeRotary(engine, plan, base + atRotary);
  if (outputPointer === 0) outputPointer = base + atOutput;
  const { words } = engine.memory;
  const word = block >>> 2;
  words[word + Word.x] = xPointer;
  words[word + Word.y] = outputPointer;
  for (const strides of [Word.xBatchStride, Word.yBatchStride]) {
    words[word + strides] = heads * length * width;
    words[word + strides + 1] = isPositionsFirst ? width : length * width;
    words[word + strides + 2] = isPositionsFirst ? heads * width : width;
  }
  words[word + Word.batchSize] = batch;
  words[word + Word.numHeads] = heads;
  words[word + Word.seqLen] = length;
  words[word + Word.headDim] = width;
  writeRotaryTable(words, word + Word.table, placed);
  words[word + Word.positions] = placed.queryRows;
  words[word + Word.positions + 1] = placed.queryBatchStride * length;
  const status = engine.glue.rotaryEmbedding(block);
  if (status !== Status.ok)
    failWith("shape", `rotaryEmbedding: the core refused the arguments (status ${status})`, { argument: "rotaryEmbedding" });

  if (target === undefined) return readResult(engine, base + atOutput, x.elements, shape, kind);
  finishTarget(engine, target, outputPointer, base + atOutput, x.elements);
  return out as FloatTensor;
}
