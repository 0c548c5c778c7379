/**
 * The only file that touches WebAssembly memory.
 *
 * Views of that memory die silently when it grows, so nobody keeps one: each method below makes sure of a live view before it uses it. Memory grows
 * only inside `allocate`, `stage` and the C++ calls themselves; between them pointers and views stay good.
 *
 * How a plain call uses it (see scaled-dot-product-attention.ts):
 *
 *     let bytes = 0;                                        // 1. plan: offsets of everything that has to be copied in or out
 *     const atQuery = bytes; bytes += staged(4 * queryElements);
 *     const atOutput = bytes; bytes += staged(4 * outputElements);
 *     const base = memory.stage(bytes, "this call");        // 2. one area for all, reused by the next call; throws "memory", nothing changed
 *     memory.writeFloat32(base + atQuery, query);           // 3. one bulk copy per input
 *     glue.attentionForward(block);                         // 4. compute
 *     return memory.readFloat32(base + atOutput, n);        // 5. one copy out, owned by the caller
 *
 * There is one staging area, so steps 2 to 5 must not be interleaved with another call's. Objects that own memory (layer, cache, buffer) use
 * `allocate` and `release`, or `createBlock` for a parameter block.
 * Pointers are unsigned 32-bit; memory can reach 4 GiB, so byte arithmetic is done in doubles and never with `|` or `<<`.
 */
import { failDisposed, failMemory } from "./errors.js";
import type { GlueModule } from "./glue-module.js";

/** Alignment of everything in this file, in bytes: a cache line. */
const ALIGNMENT = 64;
/** The staging area grows in steps of this many bytes, so that a few different small shapes settle at once. */
const STAGING_STEP = 65536;

/** Bytes that something of `bytes` bytes takes in the staging area. */
export function staged(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** What an instance says of its memory. All numbers are bytes. */
export interface MemoryUsage {
  /** Held at this moment: buffers, layers, caches, and the work space that calls reuse. */
  readonly bytesInUse: number;
  /** The most that was ever held at once. */
  readonly peakBytes: number;
  /** Size of the instance's `WebAssembly.Memory`, with the program's own data and stack. It grows and never shrinks. */
  readonly totalBytes: number;
  /** What `totalBytes` can grow to. */
  readonly maximumBytes: number;
}

export class WasmMemory {
  readonly #glue: GlueModule;
  readonly #memory: WebAssembly.Memory;
  readonly #isShared: boolean;
  #f32!: Float32Array;
  #i32!: Int32Array;
  #u16!: Uint16Array;
  #u8!: Uint8Array;
  #buffer!: ArrayBufferLike;
  #staging = 0;
  #stagingBytes = 0;
  /** Live areas whose contents callers may see, address -> bytes. Filled by buffer.ts. */
  readonly #exposed = new Map<number, number>();

  constructor(glue: GlueModule) {
    this.#glue = glue;
    this.#memory = glue.wasmMemory;
    this.#isShared = !(this.#memory.buffer instanceof ArrayBuffer);
    this.#renewViews();
  }

  #renewViews(): void {
    const { buffer } = this.#memory;
    this.#buffer = buffer;
    this.#f32 = new Float32Array(buffer);
    this.#i32 = new Int32Array(buffer);
    this.#u16 = new Uint16Array(buffer);
    this.#u8 = new Uint8Array(buffer);
  }

  // Growth detaches ordinary memory, which shows as length 0: a test that costs nothing. Shared memory stays attached, its old views are
  // merely too short, so there the buffer itself is compared.
  #refresh(): void {
    if (this.#f32.length === 0 || (this.#isShared && this.#memory.buffer !== this.#buffer)) this.#renewViews();
  }

  get usage(): MemoryUsage {
    return {
      bytesInUse: this.#glue.bytesInUse(),
      peakBytes: this.#glue.peakBytes(),
      totalBytes: this.#memory.buffer.byteLength,
      maximumBytes: this.#glue.maximumBytes(),
    };
  }

  // ---- areas ----------------------------------------------------------------------------------------------------

  /** Address of `bytes` bytes, a multiple of 64, not cleared. Throws "memory"; `purpose` begins the message. `bytes` 0 gives an address, too. */
  allocate(bytes: number, purpose: string): number {
    const pointer = bytes <= this.#limit() ? this.#glue.allocate(Math.max(1, bytes)) >>> 0 : 0;
    if (pointer === 0) failMemory(purpose, bytes, this.#limit());
    return pointer;
  }

  /** Gives back what `allocate` gave. */
  release(pointer: number): void {
    this.#exposed.delete(pointer);
    this.#glue.release(pointer);
  }

  /** A cleared parameter block. Never released: one per kind of call and instance. */
  createBlock(bytes: number): number {
    const pointer = this.allocate(bytes, "parameter block");
    this.#refresh();
    this.#u8.fill(0, pointer, pointer + bytes);
    return pointer;
  }

  /** The staging area, grown if need be; its contents are lost by that. Throws "memory", after which the next call works. */
  stage(bytes: number, purpose: string): number {
    if (bytes > this.#stagingBytes) this.#growStaging(bytes, purpose);
    return this.#staging;
  }

  #growStaging(bytes: number, purpose: string): void {
    const limit = this.#limit();
    if (bytes > limit) failMemory(purpose, bytes, limit);
    // The old area goes first: the two together would make the peak.
    if (this.#staging !== 0) this.#glue.release(this.#staging);
    this.#staging = 0;
    this.#stagingBytes = 0;
    const wanted = Math.min(limit, Math.ceil(bytes / STAGING_STEP) * STAGING_STEP);
    const pointer = this.#glue.allocate(wanted) >>> 0;
    if (pointer === 0) failMemory(purpose, bytes, limit);
    this.#staging = pointer;
    this.#stagingBytes = wanted;
  }

  // No single area can be as large as the whole address space; 2^32 - 1 is also the most that the bindings' uint32 can say.
  #limit(): number {
    return Math.min(this.#glue.maximumBytes(), 2 ** 32 - 1 - STAGING_STEP);
  }

  // ---- words of parameter blocks --------------------------------------------------------------------------------

  /** Live view of all memory as int32 words, index = address / 4. For filling a block at once; not to be kept beyond the next call that may grow. */
  get words(): Int32Array {
    this.#refresh();
    return this.#i32;
  }

  /** The same as float32. */
  get floats(): Float32Array {
    this.#refresh();
    return this.#f32;
  }

  // ---- copies in ------------------------------------------------------------------------------------------------

  writeFloat32(pointer: number, data: ArrayLike<number>): void {
    this.#refresh();
    this.#f32.set(data, pointer >>> 2);
  }

  writeInt32(pointer: number, data: ArrayLike<number>): void {
    this.#refresh();
    this.#i32.set(data, pointer >>> 2);
  }

  writeUint8(pointer: number, data: ArrayLike<number>): void {
    this.#refresh();
    this.#u8.set(data, pointer);
  }

  /** The bits of float16 elements (`Float16Array` or `Uint16Array`), as they are. */
  writeHalf(pointer: number, data: ArrayBufferView): void {
    this.#refresh();
    const bits = data instanceof Uint16Array ? data : new Uint16Array(data.buffer, data.byteOffset, data.byteLength >>> 1);
    this.#u16.set(bits, pointer >>> 1);
  }

  /** Clears `bytes` bytes. */
  clear(pointer: number, bytes: number): void {
    this.#refresh();
    this.#u8.fill(0, pointer, pointer + bytes);
  }

  /** Moves bytes within the memory; the areas may overlap. */
  copyWithin(target: number, source: number, bytes: number): void {
    this.#refresh();
    this.#u8.copyWithin(target, source, source + bytes);
  }

  // ---- copies out: fresh arrays that own their buffer --------------------------------------------------------------

  readFloat32(pointer: number, elements: number): Float32Array {
    this.#refresh();
    const start = pointer >>> 2;
    try {
      return this.#f32.slice(start, start + elements);
    } catch (cause) {
      return failMemory("result", elements * 4, this.#limit(), cause);
    }
  }

  readUint16(pointer: number, elements: number): Uint16Array {
    this.#refresh();
    const start = pointer >>> 1;
    try {
      return this.#u16.slice(start, start + elements);
    } catch (cause) {
      return failMemory("result", elements * 2, this.#limit(), cause);
    }
  }

  readInt32(pointer: number, elements: number): Int32Array {
    this.#refresh();
    const start = pointer >>> 2;
    return this.#i32.slice(start, start + elements);
  }

  /** Copies out into an array of the caller. */
  readFloat32Into(pointer: number, target: Float32Array): void {
    this.#refresh();
    const start = pointer >>> 2;
    target.set(this.#f32.subarray(start, start + target.length));
  }

  /** The bits of float16 elements, into a `Float16Array` or `Uint16Array` of the caller. */
  readHalfInto(pointer: number, target: ArrayBufferView): void {
    this.#refresh();
    const bits = target instanceof Uint16Array ? target : new Uint16Array(target.buffer, target.byteOffset, target.byteLength >>> 1);
    const start = pointer >>> 1;
    bits.set(this.#u16.subarray(start, start + bits.length));
  }

  // ---- memory that callers see -----------------------------------------------------------------------------------

  /** From now on `locate` accepts views of this area, until it is released. */
  expose(pointer: number, bytes: number): void {
    this.#exposed.set(pointer, bytes);
  }

  /** Live views for callers. They detach when the memory grows. */
  viewFloat32(pointer: number, elements: number): Float32Array {
    this.#refresh();
    return new Float32Array(this.#buffer, pointer, elements);
  }

  viewUint16(pointer: number, elements: number): Uint16Array {
    this.#refresh();
    return new Uint16Array(this.#buffer, pointer, elements);
  }

  viewUint8(pointer: number, elements: number): Uint8Array {
    this.#refresh();
    return new Uint8Array(this.#buffer, pointer, elements);
  }

  /** True when `view` is a view of this memory as it is now (a renewed one after growth). */
  owns(view: ArrayBufferView): boolean {
    if (this.#exposed.size === 0) return false; // nobody outside can have a view: spares the getter, which is slow for small arrays
    this.#refresh();
    return view.buffer === this.#buffer;
  }

  /**
   * Address of the data of `view` when it lies in this memory; 0 when it lies elsewhere in JavaScript and has to be copied.
   * A view of this memory that is in no live area throws "disposed": what it belonged to is gone.
   */
  locate(view: ArrayBufferView, argument: string): number {
    if (!this.owns(view)) return 0;
    const start = view.byteOffset;
    const end = start + view.byteLength;
    for (const [pointer, bytes] of this.#exposed) {
      if (start >= pointer && end <= pointer + bytes) return start;
    }
    return failDisposed(`${argument}: the buffer that this view belongs to`);
  }
}
