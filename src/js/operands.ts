/**
 * Arguments that are tensors: read once, checked, found or staged in WASM memory, and results in the same element type.
 *
 *     const query = readTensor(value, "query");         // throws "dtype" or "shape"
 *     locateOperand(engine, query);                     // finds out whether its elements are in WASM memory already
 *     bytes += float32Bytes(query);                     // room that it needs in the staging area to be there as float32
 *     const pointer = placeFloat32(engine, query, at);  // copies (and converts float16) if need be; the address to compute with
 *
 * Nothing here touches WASM memory but through memory.ts.
 */
import { WasmBuffer } from "./buffer.js";
import type { Engine } from "./engine.js";
import { describeValue, fail, formatShape } from "./errors.js";
import { staged } from "./memory.js";
import { countElements } from "./sizes.js";
import { isFloat16Array, type Float16Data, type FloatData, type FloatTensor } from "./tensor.js";

/**
 * A tensor argument after reading: its parts agree with each other, and its properties were read exactly once (a getter can't change its mind).
 */
export interface Operand {
  /** What messages call it. */
  readonly argument: string;
  /** Where its elements are, unless it is a buffer of the same instance. */
  data: FloatData | Uint8Array | undefined;
  /** The buffer that holds its elements: no copy is needed when it belongs to the same instance. */
  readonly buffer: WasmBuffer | undefined;
  readonly shape: ArrayLike<number>;
  readonly elements: number;
  readonly dtype: "float32" | "float16" | "uint8";
  /** Address of the elements when they are in the instance's memory already, else 0. Set by `locateOperand`. */
  pointer: number;
}

/**
 * Reads an argument that has to be a tensor of numbers.
 * Throws "dtype" when it is none, "shape" when shape and data contradict each other.
 */
export function readTensor(value: unknown, argument: string): Operand {
  const operand = readAnyTensor(value, argument);
  if (operand.dtype === "uint8") {
    fail(
      "dtype",
      argument,
      'float32 data (Float32Array), or float16 (Float16Array, or Uint16Array with dtype: "float16")',
      describeValue(operand.data),
    );
  }
  return operand;
}

/** The same for tensors that may be masks, too: elements of type "uint8". */
export function readAnyTensor(value: unknown, argument: string): Operand {
  if (value instanceof WasmBuffer) return WasmBuffer.operand(value, argument);
  if (typeof value !== "object" || value === null) return failTensor(value, argument);
  const given = value as { data?: unknown; shape?: unknown; dims?: unknown; dtype?: unknown; type?: unknown };
  const { data } = given;
  const shape = (given.shape ?? given.dims) as ArrayLike<number>;
  if (typeof data !== "object" || data === null || typeof shape !== "object" || shape === null || typeof shape.length !== "number") {
    return failTensor(value, argument);
  }
  let dtype: Operand["dtype"];
  if (data instanceof Float32Array) {
    dtype = "float32";
  } else if (data instanceof Uint16Array) {
    if ((given.dtype ?? given.type) !== "float16") {
      fail(
        "dtype",
        argument,
        'float32 data, or dtype: "float16" beside a Uint16Array of float16 bits',
        `a Uint16Array with dtype ${describeValue(given.dtype)}`,
      );
    }
    dtype = "float16";
  } else if (data instanceof Uint8Array || data instanceof Uint8ClampedArray) {
    dtype = "uint8";
  } else if (isFloat16Array(data)) {
    dtype = "float16";
  } else {
    return failData(data, argument);
  }
  const elements = countElements(shape, argument);
  const length = (data as Float32Array).length;
  if (length !== elements) {
    fail("shape", argument, `${elements} elements (shape ${formatShape(shape)})`, describeLength(data as Float32Array));
  }
  return { argument, data: data as FloatData | Uint8Array, buffer: undefined, shape, elements, dtype, pointer: 0 };
}

function failTensor(value: unknown, argument: string): never {
  if (Array.isArray(value)) {
    return fail("dtype", argument, "a tensor { data, shape }", `${describeValue(value)}; tensor(${argument}) makes one from nested arrays`);
  }
  if (ArrayBuffer.isView(value)) {
    return fail(
      "dtype",
      argument,
      "a tensor { data, shape }",
      `${describeValue(value)} without a shape; tensor(${argument}, shape) makes one`,
    );
  }
  return fail("dtype", argument, "a tensor { data, shape }", describeValue(value));
}

function failData(data: object, argument: string): never {
  const hint =
    data instanceof Float64Array
      ? "; Float32Array.from(data) converts it"
      : data instanceof BigInt64Array || data instanceof BigUint64Array
        ? "; Float32Array.from(data, Number) converts it"
        : "";
  return fail("dtype", `${argument}.data`, "a Float32Array", describeValue(data) + hint);
}

/** Number of elements for messages, with a word on detached ones. */
function describeLength(data: { readonly length: number }): string {
  return data.length === 0 ? describeValue(data) : String(data.length);
}

/** Throws when a tensor has another number of axes than `allowed`. */
export function checkRank(operand: Operand, ranks: readonly number[], names: string): void {
  if (!ranks.includes(operand.shape.length)) {
    fail("shape", operand.argument, names, `shape ${formatShape(operand.shape)}`);
  }
}

/** Throws unless `operand` has exactly this shape; `names` are the names of the sizes, for the message. */
export function checkShape(operand: Operand, sizes: readonly number[], names: readonly string[]): void {
  const { shape } = operand;
  if (shape.length === sizes.length && sizes.every((size, i) => shape[i] === size)) return;
  const expected = sizes.map((size, i) => `${names[i]} ${size}`).join(" × ");
  fail("shape", operand.argument, `shape ${formatShape(sizes)} (${expected})`, formatShape(shape));
}

/** Finds out where the elements are. Call it before anything is staged, once per call. */
export function locateOperand(engine: Engine, operand: Operand): void {
  const { buffer } = operand;
  if (buffer === undefined) {
    operand.pointer = engine.memory.locate(operand.data as ArrayBufferView, operand.argument);
  } else if (WasmBuffer.engine(buffer) === engine) {
    operand.pointer = WasmBuffer.pointer(buffer);
  } else {
    operand.data = buffer.data; // of another instance: copied like any array
  }
}

const BYTES_PER_ELEMENT = { float32: 4, float16: 2, uint8: 1 } as const;

/** Bytes of staging area that the operand needs to be in WASM memory in its own element type. */
export function rawBytes(operand: Operand): number {
  return operand.pointer !== 0 ? 0 : staged(operand.elements * BYTES_PER_ELEMENT[operand.dtype]);
}

/** Copies the elements to `at`, if they are not in WASM memory yet; returns their address. */
export function placeRaw(engine: Engine, operand: Operand, at: number): number {
  if (operand.pointer !== 0) return operand.pointer;
  const { data } = operand;
  if (operand.dtype === "float32") engine.memory.writeFloat32(at, data as Float32Array);
  else if (operand.dtype === "float16") engine.memory.writeHalf(at, data as ArrayBufferView);
  else engine.memory.writeUint8(at, data as Uint8Array);
  return at;
}

/** Bytes of staging area that the operand needs to be in WASM memory as float32. */
export function float32Bytes(operand: Operand): number {
  return rawBytes(operand) + (operand.dtype === "float16" ? staged(operand.elements * 4) : 0);
}

/** Makes the elements available as float32, using `float32Bytes(operand)` bytes from `at`; returns their address. */
export function placeFloat32(engine: Engine, operand: Operand, at: number): number {
  const raw = placeRaw(engine, operand, at);
  if (operand.dtype !== "float16") return raw;
  const target = at + rawBytes(operand);
  engine.glue.halfToFloat(raw, target, operand.elements);
  return target;
}

/** How results are kept: as float32, or in the float16 form that the query came in. */
export type ResultKind = "float32" | "Float16Array" | "Uint16Array";

/** The result kind that answers to an operand's element type. */
export function resultKind(operand: Operand): ResultKind {
  return operand.dtype !== "float16" ? "float32" : isFloat16Array(operand.data) ? "Float16Array" : "Uint16Array";
}

/** Bytes of staging area for a result computed as float32 and then converted to `kind`. */
export function resultBytes(elements: number, kind: ResultKind): number {
  return staged(elements * 4) + (kind === "float32" ? 0 : staged(elements * 2));
}

/** Reads the float32 result at `at` (with `resultBytes` bytes of room) as a tensor of its own, rounding once for float16. */
export function readResult(engine: Engine, at: number, elements: number, shape: number[], kind: ResultKind): FloatTensor {
  if (kind === "float32") return { data: engine.memory.readFloat32(at, elements), shape };
  const halves = at + staged(elements * 4);
  engine.glue.floatToHalf(at, halves, elements);
  const bits = engine.memory.readUint16(halves, elements);
  if (kind === "Uint16Array") return { data: bits, shape, dtype: "float16" };
  // The class exists: the query was one.
  const { Float16Array } = globalThis as unknown as { Float16Array: new (buffer: ArrayBufferLike) => Float16Data };
  return { data: new Float16Array(bits.buffer), shape };
}
