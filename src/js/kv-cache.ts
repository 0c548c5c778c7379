/// <reference lib="esnext.disposable" preserve="true" />
/** Keys and values of earlier positions, in WASM memory: `attn.createKvCache(...)`. */
import { KvType } from "./attention-block.js";
import type { AttentionBuffer } from "./buffer.js";
import { disposeSymbol } from "./dispose.js";
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failDisposed, failWith, formatShape } from "./errors.js";
import { Status } from "./glue-module.js";
import { KV_APPEND_BLOCK_WORDS, KV_CACHE_BLOCK_WORDS, KvAppendBlock as Append, KvCacheBlock as Word } from "./kv-cache-block.js";
import { KvSource, type KvStrides } from "./kv-source.js";
import { staged } from "./memory.js";
import { float32Bytes, locateOperand, placeFloat32, placeRaw, rawBytes, readTensor, type Operand } from "./operands.js";
import {
  countUp,
  placeRotary,
  planRotary,
  readPositions,
  readRotary,
  writeRotaryTable,
  type Positions,
  type PositionsLike,
  type RotaryOptions,
} from "./rotary.js";
import type { Layout } from "./scaled-dot-product-attention.js";
import { checkAddressable } from "./sizes.js";
import type { DType, Tensor, TensorLike } from "./tensor.js";

/** Options of `createKvCache`. For each one only `undefined` means "not given". */
export interface KvCacheOptions {
  /** Number of batch rows (sequences, beams). Default: 1. */
  batchSize?: number | undefined;
  /** Number of key and value heads. */
  numKvHeads: number;
  /** Width of a key. */
  headDim: number;
  /** Width of a value. Default: headDim. */
  valueDim?: number | undefined;
  /**
   * Positions that fit, for each batch row. With `window` a cache needs room for window - 1 positions and the longest `append`; more room means that rows
   * are moved less often. Default with `window`: 2 · window + 256; without it has to be given.
   */
  capacity?: number | undefined;
  /** Up to how many positions the capacity grows by itself, by doubling (for a moment both sizes are held). Default: `capacity`, no growth. */
  maxCapacity?: number | undefined;
  /**
   * Sliding: only the last `window` positions of each query are attended to and kept. Calls that use the cache limit `window.left` to window - 1 by
   * themselves. A window that does not count the own position (`left`) is `window: left + 1`. Default: all positions are kept.
   */
  window?: number | undefined;
  /** `"float16"` takes half the memory: keys and values are rounded once, arithmetic stays float32. Default: `"float32"`. */
  dtype?: DType | undefined;
}

/** Options of `append`. For each one only `undefined` means "not given". */
export interface KvAppendOptions {
  /** How many of the given positions each batch row really has [batchSize] (the others are padding at the end), or one number for all. Default: all. */
  lengths?: number | ArrayLike<number> | undefined;
  /** Turns the keys on their way in. Positions go on where the cache ends. Default: keys are stored as they are. */
  rotary?: RotaryOptions | undefined;
  /** Positions for `rotary`, when they are others. */
  positions?: PositionsLike | undefined;
  /** Order of the axes of key and value. Default: `"bhsd"`. */
  layout?: Layout | undefined;
}

type Input = TensorLike | AttentionBuffer<"float32"> | AttentionBuffer<"float16">;

/**
 * A cache of keys and values: `append` new positions, then attend with `scaledDotProductAttention(query, cache, { causal: true })`, or hand it to
 * `layer.forward`. The queries of a call are the last positions. It holds memory until `dispose()` (or `using`).
 *
 * ```ts
 * using cache = attn.createKvCache({ numKvHeads: 8, headDim: 128, capacity: 4096 });
 * cache.append(key, value);                                                       // [1, 8, n, 128] each, any n
 * const { output } = attn.scaledDotProductAttention(query, cache, { causal: true });
 * ```
 */
export interface KvCache {
  readonly batchSize: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  readonly dtype: DType;
  /** Positions that fit at this moment. */
  readonly capacity: number;
  /** Positions that are held and can be attended to: of the longest batch row. */
  readonly length: number;
  /** The same for each batch row; a copy. */
  readonly lengths: Int32Array;
  /** Positions that were appended and not taken back, for each batch row; a copy. More than `lengths` when a window has slid on. */
  readonly positions: Int32Array;
  /** Last positions that each query sees; 0 = all. */
  readonly window: number;
  /** Bytes of WebAssembly memory that it holds. */
  readonly byteLength: number;
  /** True after `dispose()`. */
  readonly disposed: boolean;

  /**
   * Takes new positions behind those that are held.
   *
   * @param key - [batchSize, numKvHeads, n, headDim]; leading axes of size 1 may be left out. float32 or float16; converted to the cache's type.
   * @param value - [batchSize, numKvHeads, n, valueDim], of the same rank.
   * @throws AttentionError `"memory"` when there is no room, `"shape"`, `"dtype"`, `"option"`, `"disposed"`; the cache is as it was then.
   *
   * Cost: one copy of the new positions. With `window` rows are moved now and then, which comes to at most one more copy of each.
   */
  append(key: Input, value: Input, options?: KvAppendOptions): void;
  /**
   * Keeps the first `positions` positions of each batch row and forgets the later ones (speculative decoding). One number for all rows, or one for each;
   * rows that are shorter stay as they are.
   * @throws AttentionError `"option"` when a window has already slid past what would be needed; what the last `append` brought can always be taken back.
   */
  truncate(positions: number | ArrayLike<number>): void;
  /** Forgets everything. */
  reset(): void;
  /** Batch row b becomes what batch row order[b] was, for all at once (beam search); a row may be used several times. Copies only rows that change. */
  reorder(order: ArrayLike<number>): void;
  /** Batch row `target` becomes a copy of batch row `source`. */
  copyRow(source: number, target: number): void;
  /** What is held, as new tensors [batchSize, numKvHeads, length, headDim] and [..., valueDim]; rows that are shorter end with zeros. */
  read(): { key: Tensor | Tensor<Uint16Array>; value: Tensor | Tensor<Uint16Array> };
  /** Frees the memory. Twice is silent; use after it throws `"disposed"`. */
  dispose(): void;
  [Symbol.dispose](): void;
}

const OPTION_NAMES: ReadonlySet<string> = new Set([
  "batchSize",
  "numKvHeads",
  "headDim",
  "valueDim",
  "capacity",
  "maxCapacity",
  "window",
  "dtype",
]);
const APPEND_OPTIONS: ReadonlySet<string> = new Set(["lengths", "rotary", "positions", "layout"]);

/** How a cache makes room for new positions. */
export interface CacheStep {
  readonly counts: Int32Array | undefined;
  readonly length: number;
  /** Rows at the front that are not needed any more; they stay where they are. */
  readonly gone: number;
  /** Whether the rows that are needed move to the front of the memory. */
  readonly isDrop: boolean;
  readonly capacity: number;
}

/** The class behind {@link KvCache}. */
export class WasmKvCache extends KvSource implements KvCache {
  readonly #engine: Engine;
  readonly #batchSize: number;
  readonly #numKvHeads: number;
  readonly #headDim: number;
  readonly #valueDim: number;
  readonly #dtype: DType;
  readonly #window: number;
  readonly #maxCapacity: number;
  #capacity: number;
  #pointer: number;
  /** First row in use; rows before it have slid out of the window. */
  #start = 0;
  readonly #lengths: Int32Array;
  readonly #positions: Int32Array;
  #keyStrides!: KvStrides;
  #valueStrides!: KvStrides;
  /** No position taken since the cache was last empty held an infinity or a NaN; only kept up for float16. */
  #isFinite = true;
  #disposed = false;

  constructor(engine: Engine, options: KvCacheOptions) {
    super();
    checkOptionNames(options, OPTION_NAMES, "options");
    const { batchSize = 1, numKvHeads, headDim, valueDim = headDim, window = 0, dtype = "float32" } = options;
    this.#engine = engine;
    this.#batchSize = readCount(batchSize, "options.batchSize", 1);
    this.#numKvHeads = readCount(numKvHeads, "options.numKvHeads", 1);
    this.#headDim = readCount(headDim, "options.headDim", 1);
    this.#valueDim = readCount(valueDim, "options.valueDim", 1);
    this.#window = options.window === undefined ? 0 : readCount(window, "options.window", 1);
    if (dtype !== "float32" && dtype !== "float16") fail("option", "options.dtype", '"float32" or "float16"', describeValue(dtype));
    this.#dtype = dtype;
    const capacity = options.capacity === undefined && this.#window > 0 ? 2 * this.#window + 256 : options.capacity;
    this.#capacity = readCount(capacity, "options.capacity", Math.max(1, this.#window));
    this.#maxCapacity =
      options.maxCapacity === undefined
        ? this.#capacity
        : options.maxCapacity === Infinity
          ? MAX_CAPACITY
          : readCount(options.maxCapacity, "options.maxCapacity", this.#capacity);
    this.#lengths = new Int32Array(this.#batchSize);
    this.#positions = new Int32Array(this.#batchSize);
    this.#pointer = engine.memory.allocate(this.#bytesFor(this.#capacity), "createKvCache");
    this.#setStrides();
    engine.registerForCleanup(this, this.#pointer);
  }

  // ---- what it is ------------------------------------------------------------------------------------------------

  get engine(): Engine {
    return this.#engine;
  }
  get batchSize(): number {
    return this.#batchSize;
  }
  get numKvHeads(): number {
    return this.#numKvHeads;
  }
  get headDim(): number {
    return this.#headDim;
  }
  get valueDim(): number {
    return this.#valueDim;
  }
  get dtype(): DType {
    return this.#dtype;
  }
  get kvType(): number {
    return this.#dtype === "float16" ? KvType.f16 : KvType.f32;
  }
  override get isFinite(): boolean {
    return this.#isFinite;
  }
  override get window(): number {
    return this.#window;
  }
  get capacity(): number {
    return this.#capacity;
  }
  get length(): number {
    let longest = 0;
    for (let b = 0; b < this.#batchSize; b++) longest = Math.max(longest, this.#lengths[b]!);
    return longest;
  }
  get lengths(): Int32Array {
    return this.#lengths.slice();
  }
  get positions(): Int32Array {
    return this.#positions.slice();
  }
  get byteLength(): number {
    return this.#bytesFor(this.#capacity);
  }
  get disposed(): boolean {
    return this.#disposed || this.#engine.disposed;
  }
  get keyPointer(): number {
    return this.#pointer + this.#start * this.#headDim * this.#elementBytes;
  }
  get valuePointer(): number {
    return this.#valueArea + this.#start * this.#valueDim * this.#elementBytes;
  }
  get keyStrides(): KvStrides {
    return this.#keyStrides;
  }
  get valueStrides(): KvStrides {
    return this.#valueStrides;
  }

  checkUsable(argument: string): void {
    if (this.#disposed) failDisposed(argument === "cache" ? "the cache" : `${argument}: the cache`);
    this.#engine.checkAlive();
  }

  get #elementBytes(): number {
    return this.#dtype === "float16" ? 2 : 4;
  }

  #keyBytes(capacity: number): number {
    return staged(this.#batchSize * this.#numKvHeads * capacity * this.#headDim * this.#elementBytes);
  }

  #bytesFor(capacity: number): number {
    const rows = this.#batchSize * this.#numKvHeads * capacity;
    // The core counts elements in 32 bits.
    if (!(rows * Math.max(this.#headDim, this.#valueDim) < 2 ** 31)) {
      fail("option", "options.capacity", "sizes whose product is below 2^31", `${rows * Math.max(this.#headDim, this.#valueDim)} elements`);
    }
    const bytes = this.#keyBytes(capacity) + staged(rows * this.#valueDim * this.#elementBytes);
    checkAddressable(bytes, "options.capacity");
    return bytes;
  }

  get #valueArea(): number {
    return this.#pointer + this.#keyBytes(this.#capacity);
  }

  #setStrides(): void {
    const strides = (width: number): KvStrides => ({
      batch: this.#numKvHeads * this.#capacity * width,
      head: this.#capacity * width,
      row: width,
    });
    this.#keyStrides = strides(this.#headDim);
    this.#valueStrides = strides(this.#valueDim);
  }

  // ---- new positions -----------------------------------------------------------------------------------------------

  append(keyLike: Input, valueLike: Input, options: KvAppendOptions = {}): void {
    this.checkUsable("cache");
    checkOptionNames(options, APPEND_OPTIONS, "options");
    const engine = this.#engine;
    const { layout, rotary: rotaryOptions, positions } = options;
    if (layout !== undefined && layout !== "bhsd" && layout !== "bshd")
      fail("option", "options.layout", '"bhsd" or "bshd"', describeValue(layout));
    const isPositionsFirst = layout === "bshd";
    const key = readTensor(keyLike, "key");
    const value = readTensor(valueLike, "value");
    const length = this.#lengthOf(key, this.#headDim, isPositionsFirst);
    const valueLength = this.#lengthOf(value, this.#valueDim, isPositionsFirst);
    if (valueLength !== length)
      fail("shape", "value", `${length} positions like the key`, `${valueLength} (shape ${formatShape(value.shape)})`);
    const counts = readNewLengths(options.lengths, "options.lengths", this.#batchSize, length);
    const rotary = rotaryOptions === undefined ? undefined : readRotary(rotaryOptions, "options.rotary", this.#headDim);
    if (rotary === undefined && positions !== undefined) fail("option", "options.positions", "options.rotary beside it", "none");
    const plan =
      rotary === undefined ? undefined : planRotary(engine, rotary, this.#batchSize, this.newPositions(positions, length), undefined);

    const usesHalf = key.dtype === "float16" && value.dtype === "float16";
    locateOperand(engine, key);
    locateOperand(engine, value);
    let bytes = usesHalf ? rawBytes(key) : float32Bytes(key);
    const atValue = bytes;
    bytes += usesHalf ? rawBytes(value) : float32Bytes(value);
    const atLengths = bytes;
    bytes += 2 * staged(4 * this.#batchSize);
    const atRotary = bytes;
    bytes += plan === undefined ? 0 : plan.bytes;
    checkAddressable(bytes, "append");
    const step = this.planStep(counts, length);
    this.makeRoom(step);
    const base = engine.memory.stage(bytes, "append");

    const block = appendBlock(engine);
    const keyPointer = usesHalf ? placeRaw(engine, key, base) : placeFloat32(engine, key, base);
    const valuePointer = usesHalf ? placeRaw(engine, value, base + atValue) : placeFloat32(engine, value, base + atValue);
    const newLengths = base + atLengths + staged(4 * this.#batchSize);
    if (counts !== undefined) engine.memory.writeInt32(newLengths, counts);
    const placed = plan === undefined ? undefined : placeRotary(engine, plan, base + atRotary);
    this.#writeCache(block, base + atLengths);
    const { words } = engine.memory;
    const word = block >>> 2;
    words[word + Append.key] = keyPointer;
    words[word + Append.value] = valuePointer;
    this.#writeSourceStrides(words, word + Append.keyBatchStride, length, this.#headDim, isPositionsFirst);
    this.#writeSourceStrides(words, word + Append.valueBatchStride, length, this.#valueDim, isPositionsFirst);
    words[word + Append.sourceType] = usesHalf ? KvType.f16 : KvType.f32;
    words[word + Append.seqLen] = length;
    words[word + Append.newLengths] = counts === undefined ? 0 : newLengths;
    writeRotaryTable(words, word + Append.rotary, placed);
    words[word + Append.positions] = placed === undefined ? 0 : placed.keyRows;
    words[word + Append.positions + 1] = placed === undefined ? 0 : placed.keyBatchStride * length;
    words[word + Append.finite] = this.#isFinite ? 1 : 0;
    this.#check(engine.glue.kvCacheAppend(block), "append");
    this.commit(step, engine.memory.words[word + Append.finite] !== 0);
  }

  #lengthOf(operand: Operand, width: number, isPositionsFirst: boolean): number {
    const { shape } = operand;
    const rank = shape.length;
    const heads = rank === 2 ? 1 : shape[isPositionsFirst ? rank - 2 : rank - 3];
    const batch = rank === 4 ? shape[0] : 1;
    if (rank < 2 || rank > 4 || batch !== this.#batchSize || heads !== this.#numKvHeads || shape[rank - 1] !== width) {
      const axes = isPositionsFirst ? [this.#batchSize, "n", this.#numKvHeads, width] : [this.#batchSize, this.#numKvHeads, "n", width];
      fail("shape", operand.argument, `shape [${axes.join(", ")}] (leading axes of size 1 may be left out)`, formatShape(shape));
    }
    return rank === 2 ? shape[0]! : shape[isPositionsFirst ? rank - 3 : rank - 2]!;
  }

  #writeSourceStrides(words: Int32Array, at: number, length: number, width: number, isPositionsFirst: boolean): void {
    words[at] = this.#numKvHeads * length * width;
    words[at + 1] = isPositionsFirst ? width : length * width;
    words[at + 2] = isPositionsFirst ? this.#numKvHeads * width : width;
  }

  // ---- for the layer: room first, rows then, lengths last ------------------------------------------------------------

  /** Positions of `length` new elements: those given, or going on where each batch row ends. */
  newPositions(given: PositionsLike | undefined, length: number): Positions {
    if (given === undefined) return countUp(this.#positions, this.#batchSize, length);
    return readPositions(given, "options.positions", this.#batchSize, length);
  }

  /** Throws when memory of a caller overlaps that of the cache. */
  checkApart(pointer: number, bytes: number): void {
    if (pointer < this.#pointer + this.byteLength && this.#pointer < pointer + bytes) {
      fail("option", "options.out", "memory that does not overlap the cache", "memory that overlaps the cache");
    }
  }

  /** What has to happen before new positions are written. Throws "memory" when there is no room for them; nothing has changed then. */
  planStep(counts: Int32Array | undefined, length: number): CacheStep {
    if (this.#window === 0) {
      const needed = this.#needed(counts, length, Infinity);
      if (needed <= this.#capacity) return { counts, length, gone: 0, isDrop: false, capacity: this.#capacity };
      if (needed > this.#maxCapacity) this.#failFull(counts, length, Infinity);
      return { counts, length, gone: 0, isDrop: false, capacity: this.#grownTo(needed) };
    }
    // Rows that no query will see again: those before the window of the first new one, common to all batch rows.
    const kept = this.#window - 1;
    let shortest = this.#lengths[0]!;
    for (let b = 1; b < this.#batchSize; b++) shortest = Math.min(shortest, this.#lengths[b]!);
    const gone = length === 0 ? 0 : Math.max(0, shortest - kept);
    if (this.#start + this.#needed(counts, length, Infinity) <= this.#capacity)
      return { counts, length, gone, isDrop: false, capacity: this.#capacity };
    const needed = this.#needed(counts, length, kept);
    if (needed > this.#maxCapacity) this.#failFull(counts, length, kept);
    return { counts, length, gone: 0, isDrop: true, capacity: needed <= this.#capacity ? this.#capacity : this.#grownTo(needed) };
  }

  #grownTo(needed: number): number {
    return Math.min(this.#maxCapacity, Math.max(needed, 2 * this.#capacity));
  }

  /** Rows of batch row b that stay beside the new ones. */
  keptAfter(step: CacheStep, b: number): number {
    return step.isDrop ? Math.min(this.#lengths[b]!, this.#window - 1) : this.#lengths[b]! - step.gone;
  }

  /** Makes room as planned. Throws "memory" when growth fails; nothing has changed then. */
  makeRoom(step: CacheStep): void {
    if (step.capacity !== this.#capacity) this.#grow(step.capacity);
    if (step.isDrop) this.#dropFront(this.#window - 1);
    this.#start += step.gone;
    for (let b = 0; b < this.#batchSize; b++) this.#lengths[b] = this.#lengths[b]! - step.gone;
  }

  /** Rows that the longest batch row needs, when at most `kept` of those that it holds stay. */
  #needed(counts: Int32Array | undefined, length: number, kept: number): number {
    let needed = 0;
    for (let b = 0; b < this.#batchSize; b++) {
      needed = Math.max(needed, Math.min(kept, this.#lengths[b]!) + (counts === undefined ? length : counts[b]!));
    }
    return needed;
  }

  #failFull(counts: Int32Array | undefined, length: number, kept: number): never {
    const most = this.#maxCapacity - Math.min(kept, this.length);
    const got = counts === undefined ? length : Math.max(...counts);
    const why =
      this.#window > 0
        ? `capacity ${this.#maxCapacity}, of which a window of ${this.#window} keeps ${this.#window - 1}`
        : `capacity ${this.#maxCapacity}, length ${this.length}`;
    failWith("memory", `cache: no room for the new positions: expected at most ${most} (${why}), got ${got}; the cache is as it was`, {
      argument: "cache",
      expected: `at most ${most} new positions`,
      got: String(got),
    });
  }

  #grow(capacity: number): void {
    const engine = this.#engine;
    const { memory } = engine;
    const pointer = memory.allocate(this.#bytesFor(capacity), "cache growth");
    const block = appendBlock(engine);
    const target = copyBlock(engine);
    const at = memory.stage(staged(4 * this.#batchSize), "cache growth");
    this.#writeCache(block, at);
    const { words } = memory;
    for (let i = 0; i < KV_CACHE_BLOCK_WORDS; i++) words[(target >>> 2) + i] = words[(block >>> 2) + i]!;
    words[(target >>> 2) + Word.key] = pointer;
    words[(target >>> 2) + Word.value] = pointer + this.#keyBytes(capacity);
    words[(target >>> 2) + Word.capacity] = capacity;
    words[(target >>> 2) + Word.start] = 0;
    const status = engine.glue.kvCacheCopy(block, target);
    if (status !== Status.ok) memory.release(pointer);
    this.#check(status, "cache growth");
    engine.unregisterFromCleanup(this);
    memory.release(this.#pointer);
    this.#pointer = pointer;
    this.#capacity = capacity;
    this.#start = 0;
    this.#setStrides();
    engine.registerForCleanup(this, pointer);
  }

  /** Moves the last `kept` rows of each batch row to the front of the memory. */
  #dropFront(kept: number): void {
    const engine = this.#engine;
    const size = staged(4 * this.#batchSize);
    const at = engine.memory.stage(2 * size, "cache");
    const first = this.#lengths.map((length) => Math.max(0, length - kept));
    engine.memory.writeInt32(at + size, first);
    const block = appendBlock(engine);
    this.#writeCache(block, at);
    this.#check(engine.glue.kvCacheDropFront(block, at + size), "cache");
    for (let b = 0; b < this.#batchSize; b++) this.#lengths[b] = this.#lengths[b]! - first[b]!;
    this.#start = 0;
  }

  /** Counts the new positions, which have been written behind the others. */
  commit({ counts, length }: CacheStep, allFinite: boolean): void {
    this.#isFinite = allFinite;
    for (let b = 0; b < this.#batchSize; b++) {
      const count = counts === undefined ? length : counts[b]!;
      this.#lengths[b] = this.#lengths[b]! + count;
      this.#positions[b] = this.#positions[b]! + count;
    }
  }

  /** What the layer tells the core: address of rows (the area, not the first row in use), capacity and first row. */
  get area(): { readonly key: number; readonly value: number; readonly start: number } {
    return { key: this.#pointer, value: this.#valueArea, start: this.#start };
  }

  // ---- taking back, and moving batch rows ----------------------------------------------------------------------------

  truncate(positions: number | ArrayLike<number>): void {
    this.checkUsable("cache");
    const wanted = readRowNumbers(positions, "positions", this.#batchSize, 0, MAX_CAPACITY);
    const lengths = this.#lengths.slice();
    for (let b = 0; b < this.#batchSize; b++) {
      const back = this.#positions[b]! - Math.min(wanted[b]!, this.#positions[b]!);
      lengths[b] = lengths[b]! - back;
      const needed = this.#window > 0 ? Math.min(this.#window - 1, this.#positions[b]! - back) : 0;
      if (lengths[b]! < needed) {
        const most = this.#lengths[b]! - needed;
        fail(
          "option",
          "positions",
          `at least ${this.#positions[b]! - Math.max(0, most)} for batch row ${b}: the window has slid past the earlier ones`,
          String(wanted[b]),
        );
      }
    }
    for (let b = 0; b < this.#batchSize; b++) {
      this.#positions[b] = Math.min(wanted[b]!, this.#positions[b]!);
      this.#lengths[b] = lengths[b]!;
    }
    if (this.length === 0) this.#isFinite = true;
  }

  reset(): void {
    this.checkUsable("cache");
    this.#lengths.fill(0);
    this.#positions.fill(0);
    this.#start = 0;
    this.#isFinite = true;
  }

  reorder(order: ArrayLike<number>): void {
    this.checkUsable("cache");
    if (typeof order === "number") fail("dtype", "order", `an array of ${this.#batchSize} batch rows`, describeValue(order));
    const sources = readRowNumbers(order, "order", this.#batchSize, 0, this.#batchSize - 1);
    const engine = this.#engine;
    const size = staged(4 * this.#batchSize);
    const at = engine.memory.stage(4 * size, "reorder");
    engine.memory.writeInt32(at + size, sources);
    const block = appendBlock(engine);
    this.#writeCache(block, at);
    this.#check(engine.glue.kvCacheReorder(block, at + size, at + 2 * size), "reorder");
    this.#lengths.set(Array.from(sources, (source) => this.#lengths[source]!));
    this.#positions.set(Array.from(sources, (source) => this.#positions[source]!));
  }

  copyRow(source: number, target: number): void {
    this.checkUsable("cache");
    const order = Array.from({ length: this.#batchSize }, (_, b) => b);
    readRowNumbers([source], "source", 1, 0, this.#batchSize - 1);
    readRowNumbers([target], "target", 1, 0, this.#batchSize - 1);
    order[target] = source;
    this.reorder(order);
  }

  read(): { key: Tensor | Tensor<Uint16Array>; value: Tensor | Tensor<Uint16Array> } {
    this.checkUsable("cache");
    return { key: this.#readOut(this.keyPointer, this.#headDim), value: this.#readOut(this.valuePointer, this.#valueDim) };
  }

  #readOut(pointer: number, width: number): Tensor | Tensor<Uint16Array> {
    const { memory } = this.#engine;
    const { length } = this;
    const elements = this.#batchSize * this.#numKvHeads * length * width;
    const data = this.#dtype === "float16" ? new Uint16Array(elements) : new Float32Array(elements);
    for (let b = 0; b < this.#batchSize; b++) {
      for (let h = 0; h < this.#numKvHeads; h++) {
        const row = b * this.#numKvHeads + h;
        const target = data.subarray(row * length * width, (row * length + this.#lengths[b]!) * width);
        const from = pointer + row * this.#capacity * width * this.#elementBytes;
        if (target instanceof Uint16Array) memory.readHalfInto(from, target);
        else memory.readFloat32Into(from, target);
      }
    }
    const shape = [this.#batchSize, this.#numKvHeads, length, width];
    return data instanceof Uint16Array ? { data, shape, dtype: "float16" } : { data, shape };
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#engine.unregisterFromCleanup(this);
    if (!this.#engine.disposed) this.#engine.memory.release(this.#pointer);
  }

  declare [Symbol.dispose]: () => void;

  static {
    Object.defineProperty(this.prototype, disposeSymbol, { value: this.prototype.dispose, configurable: true, writable: true });
  }

  // ---- the block -----------------------------------------------------------------------------------------------------

  /** Fills the words of a KvCacheBlock; the lengths are copied to `lengthsAt`. */
  #writeCache(block: number, lengthsAt: number): void {
    this.#engine.memory.writeInt32(lengthsAt, this.#lengths);
    const { words } = this.#engine.memory;
    const word = block >>> 2;
    words[word + Word.key] = this.#pointer;
    words[word + Word.value] = this.#valueArea;
    words[word + Word.type] = this.kvType;
    words[word + Word.batchSize] = this.#batchSize;
    words[word + Word.numKvHeads] = this.#numKvHeads;
    words[word + Word.capacity] = this.#capacity;
    words[word + Word.headDim] = this.#headDim;
    words[word + Word.valueDim] = this.#valueDim;
    words[word + Word.lengths] = lengthsAt;
    words[word + Word.start] = this.#start;
  }

  #check(status: number, what: string): void {
    if (status !== Status.ok) failWith("option", `${what}: the core refused the arguments (status ${status})`, { argument: what });
  }
}

/** More positions than any memory holds. */
const MAX_CAPACITY = 2 ** 31 - 1;

const blocks = new WeakMap<Engine, number>();

function appendBlock(engine: Engine): number {
  let block = blocks.get(engine);
  // The second one is for copies, where there are two caches.
  if (block === undefined) blocks.set(engine, (block = engine.memory.createBlock(4 * (KV_APPEND_BLOCK_WORDS + KV_CACHE_BLOCK_WORDS))));
  return block;
}

function copyBlock(engine: Engine): number {
  return appendBlock(engine) + 4 * KV_APPEND_BLOCK_WORDS;
}

function readCount(value: unknown, argument: string, low: number): number {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > MAX_CAPACITY) {
    fail("option", argument, `a whole number of at least ${low}`, describeValue(value));
  }
  return value as number;
}

/** How many of `length` new positions each batch row has; undefined = all. */
export function readNewLengths(given: unknown, argument: string, batchSize: number, length: number): Int32Array | undefined {
  return given === undefined ? undefined : readRowNumbers(given, argument, batchSize, 0, length);
}

/** One whole number per batch row; a single number stands for all. */
function readRowNumbers(given: unknown, argument: string, batchSize: number, low: number, high: number): Int32Array {
  if (typeof given === "number") return new Int32Array(batchSize).fill(readBetween(given, argument, low, high));
  const list = given as ArrayLike<unknown>;
  if (typeof given !== "object" || given === null || typeof list.length !== "number") {
    fail("dtype", argument, "a number or an array of numbers", describeValue(given));
  }
  if (list.length !== batchSize) fail("shape", argument, `${batchSize} elements (batchSize ${batchSize})`, describeValue(given));
  const copy = new Int32Array(batchSize);
  for (let b = 0; b < batchSize; b++) copy[b] = readBetween(list[b], `${argument}[${b}]`, low, high);
  return copy;
}

function readBetween(value: unknown, argument: string, low: number, high: number): number {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > high) {
    fail("option", argument, `a whole number from ${low} to ${high}`, describeValue(value));
  }
  return value as number;
}
