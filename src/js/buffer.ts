/// <reference lib="esnext.disposable" preserve="true" />
/** Tensors that live in WebAssembly memory: `attn.buffer(shape)`. */
import { failDisposed, fail, describeValue } from "./errors.js";
import type { Engine } from "./engine.js";
import { disposeSymbol } from "./dispose.js";
import type { Operand } from "./operands.js";
import { countElements } from "./sizes.js";

/** Element types of a buffer. `"uint8"` is for masks. */
export type BufferDType = "float32" | "float16" | "uint8";

/** What holds a buffer's elements in JavaScript. */
export interface BufferData {
  float32: Float32Array;
  float16: Uint16Array;
  uint8: Uint8Array;
}

/**
 * A tensor that lives in the instance's WebAssembly memory. Given to a call it costs no copy; given as `out` it receives the result in place.
 *
 * It holds memory until `dispose()` (or `using`); disposing twice is silent, use after it throws an AttentionError `"disposed"`.
 * A finalizer frees what was forgotten, at some time.
 */
export interface AttentionBuffer<Type extends BufferDType = "float32"> {
  /**
   * The elements: a view of WebAssembly memory, not a copy. Growth of that memory (any call of the instance can cause it) detaches views, so take
   * `buffer.data` anew each time instead of keeping it: it is always live. A detached view has length 0.
   */
  readonly data: BufferData[Type];
  readonly shape: number[];
  readonly dtype: Type;
  /** Size in bytes. */
  readonly byteLength: number;
  /** True after `dispose()`. */
  readonly disposed: boolean;
  /** Frees the memory. */
  dispose(): void;
  [Symbol.dispose](): void;
}

const BYTES: Record<BufferDType, number> = { float32: 4, float16: 2, uint8: 1 };

/** The class behind {@link AttentionBuffer}. */
export class WasmBuffer {
  readonly #engine: Engine;
  readonly #pointer: number;
  readonly #elements: number;
  readonly #dtype: BufferDType;
  readonly #shape: readonly number[];
  #data: Float32Array | Uint16Array | Uint8Array | undefined;
  #disposed = false;

  constructor(engine: Engine, shape: readonly number[], dtype: BufferDType) {
    if (!Object.hasOwn(BYTES, dtype)) fail("option", "options.dtype", '"float32", "float16" or "uint8"', describeValue(dtype));
    if (!Array.isArray(shape)) fail("shape", "shape", "an array of sizes", describeValue(shape));
    const elements = countElements(shape, "shape");
    const bytes = elements * BYTES[dtype];
    this.#engine = engine;
    this.#dtype = dtype;
    this.#elements = elements;
    this.#shape = Object.freeze([...shape]);
    this.#pointer = engine.memory.allocate(bytes, "buffer");
    engine.memory.clear(this.#pointer, bytes);
    engine.memory.expose(this.#pointer, bytes);
    engine.registerForCleanup(this, this.#pointer);
  }

  /** A fresh array each time: the buffer's own shape can't be changed. */
  get shape(): number[] {
    return [...this.#shape];
  }

  get dtype(): BufferDType {
    return this.#dtype;
  }

  get byteLength(): number {
    return this.#elements * BYTES[this.#dtype];
  }

  get disposed(): boolean {
    return this.#disposed || this.#engine.disposed;
  }

  get data(): Float32Array | Uint16Array | Uint8Array {
    this.#check("buffer");
    const { memory } = this.#engine;
    // The last view is handed out again as long as it is alive.
    if (this.#data === undefined || !memory.owns(this.#data)) {
      const view =
        this.#dtype === "float32"
          ? memory.viewFloat32(this.#pointer, this.#elements)
          : this.#dtype === "float16"
            ? memory.viewUint16(this.#pointer, this.#elements)
            : memory.viewUint8(this.#pointer, this.#elements);
      this.#data = view;
    }
    return this.#data;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#data = undefined;
    this.#engine.unregisterFromCleanup(this);
    if (!this.#engine.disposed) this.#engine.memory.release(this.#pointer);
  }

  declare [Symbol.dispose]: () => void;

  static {
    Object.defineProperty(this.prototype, disposeSymbol, { value: this.prototype.dispose, configurable: true, writable: true });
  }

  #check(argument: string): void {
    if (this.#disposed) failDisposed(argument);
    this.#engine.checkAlive();
  }

  /** The buffer as an argument: for tensor.ts. */
  static operand(buffer: WasmBuffer, argument: string): Operand {
    buffer.#check(argument);
    return { argument, data: undefined, buffer, shape: buffer.#shape, elements: buffer.#elements, dtype: buffer.#dtype, pointer: 0 };
  }

  /** Where its elements are: for the staging of arguments, after `operand`. */
  static pointer(buffer: WasmBuffer): number {
    return buffer.#pointer;
  }

  static engine(buffer: WasmBuffer): Engine {
    return buffer.#engine;
  }
}
