/**
 * Files of weights in the safetensors format (https://huggingface.co/docs/safetensors): eight bytes with the length of the header, a header of JSON that says
 * where each tensor lies, and the tensors. Nothing is read outside of what the header was checked against.
 */
import { checkOptionNames, describeValue, fail, failWith, formatShape } from "./errors.js";
import { bfloat16ToNumber, halfToNumber } from "./half-bits.js";
import { countElements } from "./sizes.js";
import type { DType } from "./tensor.js";

/** A tensor of a file: float32, or the bits of float16 or bfloat16. */
export interface SafetensorsTensor {
  readonly data: Float32Array | Uint16Array;
  readonly shape: number[];
  readonly dtype: DType | "bfloat16";
}

/** Options of reading. For each one only `undefined` means "not given". */
export interface SafetensorsOptions {
  /** Only tensors whose names begin with this, and without it in the result: `"encoder.layer.0.attention."`. Default: all. */
  prefix?: string | undefined;
  /** `"float32"` converts float16 and bfloat16 (exactly). Default: tensors stay as they are in the file. */
  dtype?: "float32" | undefined;
}

/** Options of reading one tensor. */
export interface SafetensorsReadOptions extends Pick<SafetensorsOptions, "dtype"> {
  /** First row along the first axis, and number of rows, that are read: one word's vector out of a large table. Default: all. */
  rows?: { readonly first: number; readonly count: number } | undefined;
}

/** What the header says of a tensor. */
export interface SafetensorsInfo {
  /** The name of the element type in the file, such as `"F32"`, `"BF16"` or `"I64"`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

/** A file that is read piece by piece: where it is does not matter. */
export interface SafetensorsSource {
  /** Size of the whole file in bytes. */
  readonly size: number;
  /** The bytes from `offset` on, exactly `length` of them. */
  read(offset: number, length: number): Promise<Uint8Array> | Uint8Array;
}

/** A file of which only the header has been read. */
export interface SafetensorsFile {
  /** Names of all tensors, in the order of the header. */
  readonly names: readonly string[];
  /** What the file says of itself. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the header says of a tensor; undefined when there is none of this name. */
  info(name: string): SafetensorsInfo | undefined;
  /** Reads one tensor, or some rows of it. */
  read(name: string, options?: SafetensorsReadOptions): Promise<SafetensorsTensor>;
  /** Reads the tensors of a prefix (F32, F16 and BF16; others are left out), one after the other. */
  readAll(options?: SafetensorsOptions): Promise<Record<string, SafetensorsTensor>>;
}

const OPTION_NAMES: ReadonlySet<string> = new Set(["prefix", "dtype"]);
const READ_OPTIONS: ReadonlySet<string> = new Set(["dtype", "rows"]);
const BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E5M2: 1,
  F8_E4M3: 1,
  F8_E8M0: 1,
  U16: 2,
  I16: 2,
  F16: 2,
  BF16: 2,
  U32: 4,
  I32: 4,
  F32: 4,
  U64: 8,
  I64: 8,
  F64: 8,
  C64: 8,
};
/** As the format's own reader has it. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;

interface Entry extends SafetensorsInfo {
  /** From the beginning of the file. */
  readonly offset: number;
}

interface Header {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * The tensors of a file that is in memory.
 *
 * ```ts
 * const weights = fromSafetensors(bytes, { prefix: "encoder.layer.0.attention." });
 * const layer = attn.createMultiHeadAttention({ numHeads: 12, weights });
 * ```
 *
 * @param bytes - The whole file.
 * @param options - See {@link SafetensorsOptions}.
 * @returns Tensors by name: views of `bytes` where their place allows it, else copies. F32, F16 and BF16; tensors of other types are left out.
 * @throws AttentionError `"shape"` for a file that is damaged: a bad header, an offset outside the file, an overlap, a gap, a wrong size. Nothing outside
 *   of the file is ever read. `"dtype"`, `"option"` for wrong arguments.
 */
export function fromSafetensors(bytes: ArrayBuffer | ArrayBufferView, options: SafetensorsOptions = {}): Record<string, SafetensorsTensor> {
  const { prefix, toFloat32 } = readOptions(options);
  const all = bytesOf(bytes);
  const header = parseHeader(all.subarray(LENGTH_BYTES, LENGTH_BYTES + headerLength(all, all.length)), all.length);
  const tensors: Record<string, SafetensorsTensor> = Object.create(null);
  for (const [name, entry] of header.entries) {
    if (name.startsWith(prefix) && isReadable(entry)) {
      tensors[name.slice(prefix.length)] = tensorOf(all.subarray(entry.offset, entry.offset + entry.byteLength), entry, toFloat32);
    }
  }
  return tensors;
}

/**
 * Opens a file of any size: reads its header now, and each tensor when it is asked for.
 *
 * @param source - A `Blob` (a `File`, or Node's `fs.openAsBlob(path)`), or anything that can read a range, see {@link SafetensorsSource}.
 * @throws (as a rejection) AttentionError as {@link fromSafetensors}.
 */
export async function openSafetensors(source: Blob | SafetensorsSource): Promise<SafetensorsFile> {
  const { size, read } = sourceOf(source);
  const length = headerLength(await read(0, Math.min(size, LENGTH_BYTES)), size);
  const header = parseHeader(await read(LENGTH_BYTES, length), size);
  const readTensor = async (name: string, entry: Entry, toFloat32: boolean): Promise<SafetensorsTensor> => {
    if (!isReadable(entry)) fail("dtype", name, "elements of type F32, F16 or BF16", entry.dtype);
    return tensorOf(await read(entry.offset, entry.byteLength), entry, toFloat32);
  };
  return {
    names: [...header.entries.keys()],
    metadata: header.metadata,
    info(name) {
      const entry = header.entries.get(name);
      return entry === undefined ? undefined : { dtype: entry.dtype, shape: entry.shape, byteLength: entry.byteLength };
    },
    async read(name, options = {}) {
      checkOptionNames(options, READ_OPTIONS, "options");
      const { toFloat32 } = readOptions({ dtype: options.dtype });
      const entry = header.entries.get(name);
      if (entry === undefined) fail("option", "name", "the name of a tensor of the file", describeValue(name));
      return readTensor(name, options.rows === undefined ? entry : rowsOf(entry, options.rows), toFloat32);
    },
    async readAll(options = {}) {
      const { prefix, toFloat32 } = readOptions(options);
      const tensors: Record<string, SafetensorsTensor> = Object.create(null);
      for (const [name, entry] of header.entries) {
        if (name.startsWith(prefix) && isReadable(entry)) tensors[name.slice(prefix.length)] = await readTensor(name, entry, toFloat32);
      }
      return tensors;
    },
  };
}

// ---- arguments -----------------------------------------------------------------------------------------------------

function readOptions(options: SafetensorsOptions): { prefix: string; toFloat32: boolean } {
  checkOptionNames(options, OPTION_NAMES, "options");
  const { prefix = "", dtype } = options;
  if (typeof prefix !== "string") fail("option", "options.prefix", "a string", describeValue(prefix));
  if (dtype !== undefined && dtype !== "float32") fail("option", "options.dtype", '"float32" or nothing', describeValue(dtype));
  return { prefix, toFloat32: dtype === "float32" };
}

function bytesOf(bytes: unknown): Uint8Array {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes instanceof ArrayBuffer || (typeof SharedArrayBuffer === "function" && bytes instanceof SharedArrayBuffer))
    return new Uint8Array(bytes);
  return fail("dtype", "bytes", "an ArrayBuffer or a Uint8Array", describeValue(bytes));
}

/** A source whose reads are checked: what is too short would make tensors out of nothing. */
function sourceOf(source: Blob | SafetensorsSource): { size: number; read(offset: number, length: number): Promise<Uint8Array> } {
  const isBlob = typeof Blob === "function" && source instanceof Blob;
  if (!isBlob && (typeof source !== "object" || source === null || typeof (source as SafetensorsSource).read !== "function")) {
    fail("dtype", "source", "a Blob or an object with size and read(offset, length)", describeValue(source));
  }
  const { size } = source;
  if (!Number.isSafeInteger(size) || size < 0) fail("option", "source.size", "the size of the file in bytes", describeValue(size));
  return {
    size,
    async read(offset, length) {
      const bytes = isBlob
        ? new Uint8Array(await (source as Blob).slice(offset, offset + length).arrayBuffer())
        : bytesOf(await (source as SafetensorsSource).read(offset, length));
      if (bytes.length !== length) failFile(`read(${offset}, ${length}) gave ${bytes.length} bytes`, `${length} bytes`);
      return bytes;
    },
  };
}

function failFile(what: string, expected: string): never {
  return failWith("shape", `safetensors: ${what}; expected ${expected}`, { argument: "safetensors", expected, got: what });
}

// ---- the header ----------------------------------------------------------------------------------------------------

function headerLength(bytes: Uint8Array, fileSize: number): number {
  if (bytes.length < LENGTH_BYTES) failFile(`the file has ${bytes.length} bytes`, "at least 8, with the length of the header");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true) + view.getUint32(4, true) * 2 ** 32;
  const most = Math.min(MAX_HEADER_BYTES, fileSize - LENGTH_BYTES);
  if (length < 2 || length > most) failFile(`the header has ${length} bytes`, `2 to ${most} (is it a safetensors file?)`);
  return length;
}

function parseHeader(bytes: Uint8Array, fileSize: number): Header {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    failWith("shape", `safetensors: the header is no JSON (${(cause as Error).message})`, {
      argument: "safetensors",
      expected: "JSON",
      got: "something else",
      cause,
    });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    failFile("the header is no object", "an object with the names of the tensors");
  const dataStart = LENGTH_BYTES + bytes.length;
  const dataBytes = fileSize - dataStart;
  const entries = new Map<string, Entry>();
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(parsed)) {
    if (name === "__metadata__") metadata = readMetadata(value);
    else entries.set(name, readEntry(name, value, dataStart, dataBytes));
  }
  checkLayout(entries, dataStart, fileSize);
  return { entries, metadata };
}

function readMetadata(value: unknown): Record<string, string> {
  const isText =
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every((text) => typeof text === "string");
  if (!isText) failFile("__metadata__ is something else", "an object of strings");
  return value as Record<string, string>;
}

function readEntry(name: string, value: unknown, dataStart: number, dataBytes: number): Entry {
  if (typeof value !== "object" || value === null)
    failFile(`${name} is described by ${describeValue(value)}`, "dtype, shape and data_offsets");
  const { dtype, shape, data_offsets: offsets } = value as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  if (typeof dtype !== "string" || !Object.hasOwn(BYTES, dtype))
    failFile(`${name} has the dtype ${describeValue(dtype)}`, `one of ${Object.keys(BYTES).join(", ")}`);
  if (!Array.isArray(shape) || shape.some((size) => typeof size !== "number"))
    failFile(`${name} has the shape ${describeValue(shape)}`, "an array of sizes");
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every((offset) => Number.isSafeInteger(offset) && offset >= 0)) {
    failFile(`${name} has the data_offsets ${Array.isArray(offsets) ? formatShape(offsets) : describeValue(offsets)}`, "two whole numbers");
  }
  const [begin, end] = offsets as [number, number];
  if (begin > end || end > dataBytes)
    failFile(`${name} has the data_offsets [${begin}, ${end}]`, `offsets in order and within ${dataBytes} bytes of data`);
  const wanted = countElements(shape, `safetensors: ${name}`) * BYTES[dtype]!;
  if (end - begin !== wanted) failFile(`${name} has ${end - begin} bytes`, `${wanted} (${dtype}, shape ${formatShape(shape)})`);
  return { dtype, shape, byteLength: wanted, offset: dataStart + begin };
}

/** Tensors fill the file from the header to its end: no overlap, no gap. */
function checkLayout(entries: ReadonlyMap<string, Entry>, dataStart: number, fileSize: number): void {
  let reached = dataStart;
  for (const [name, { offset, byteLength }] of [...entries].sort(([, a], [, b]) => a.offset - b.offset || a.byteLength - b.byteLength)) {
    if (offset !== reached) failFile(`${name} begins at byte ${offset}`, `byte ${reached}, where its neighbour ends`);
    reached = offset + byteLength;
  }
  if (reached !== fileSize) failFile(`the tensors end at byte ${reached}`, `byte ${fileSize}, the end of the file`);
}

/** Some rows of a tensor, as if they were one. */
function rowsOf(entry: Entry, rows: { readonly first: number; readonly count: number }): Entry {
  checkOptionNames(rows, ROW_NAMES, "options.rows");
  const { first, count } = rows;
  const { shape } = entry;
  const length = shape[0];
  if (length === undefined) fail("option", "options.rows", "nothing for a tensor without axes", describeValue(rows));
  if (!Number.isInteger(first) || !Number.isInteger(count) || first < 0 || count < 0 || first + count > length) {
    fail(
      "option",
      "options.rows",
      `rows within the ${length} of shape ${formatShape(shape)}`,
      `first ${String(first)}, count ${String(count)}`,
    );
  }
  const rowBytes = length === 0 ? 0 : entry.byteLength / length;
  return { dtype: entry.dtype, shape: [count, ...shape.slice(1)], byteLength: count * rowBytes, offset: entry.offset + first * rowBytes };
}
const ROW_NAMES: ReadonlySet<string> = new Set(["first", "count"]);

// ---- tensors -------------------------------------------------------------------------------------------------------

function isReadable({ dtype }: Entry): boolean {
  return dtype === "F32" || dtype === "F16" || dtype === "BF16";
}

function tensorOf(bytes: Uint8Array, { dtype, shape }: Entry, toFloat32: boolean): SafetensorsTensor {
  const size = BYTES[dtype]!;
  // Views need aligned places, and a machine that orders bytes as the file does, as all do that run WebAssembly's engines.
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const elements = aligned.byteLength / size;
  if (dtype === "F32") return { data: new Float32Array(aligned.buffer, aligned.byteOffset, elements), shape: [...shape], dtype: "float32" };
  const bits = new Uint16Array(aligned.buffer, aligned.byteOffset, elements);
  if (toFloat32) return { data: widen(bits, dtype === "F16" ? halves() : undefined), shape: [...shape], dtype: "float32" };
  return { data: bits, shape: [...shape], dtype: dtype === "F16" ? "float16" : "bfloat16" };
}

let halfTable: Float32Array | undefined;

/** All 65,536 float16 numbers. */
function halves(): Float32Array {
  halfTable ??= Float32Array.from({ length: 65536 }, (_, half) => halfToNumber(half));
  return halfTable;
}

/** float32 of float16 bits by table, or of bfloat16 bits, which are the upper half of a float32. */
function widen(bits: Uint16Array, table: Float32Array | undefined): Float32Array {
  const wide = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) wide[i] = table !== undefined ? table[bits[i]!]! : bfloat16ToNumber(bits[i]!);
  return wide;
}
