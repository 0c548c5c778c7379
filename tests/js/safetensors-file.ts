/** Writes safetensors files, for tests. */
import { numberToHalf } from "../../src/js/half-bits.js";

export type FileType = "F32" | "F16" | "BF16" | "I64";

export interface FileTensor {
  readonly data: ArrayLike<number>;
  readonly shape: readonly number[];
}

const BYTES = { F32: 4, F16: 2, BF16: 2, I64: 8 };

/** The bytes of a file with these tensors; `typeOf` chooses how each is stored. */
export function safetensorsBytes(
  tensors: Readonly<Record<string, FileTensor>>,
  typeOf: (name: string) => FileType = () => "F32",
  metadata?: Record<string, string>,
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = Object.create(null); // a tensor may be named __proto__
  if (metadata !== undefined) header["__metadata__"] = metadata;
  let end = 0;
  for (const [name, { data, shape }] of Object.entries(tensors)) {
    const begin = end;
    end += data.length * BYTES[typeOf(name)];
    header[name] = { dtype: typeOf(name), shape, data_offsets: [begin, end] };
  }
  return fileOf(JSON.stringify(header), end, (view, start) => {
    let at = start;
    for (const [name, { data }] of Object.entries(tensors)) {
      const type = typeOf(name);
      for (let i = 0; i < data.length; i++, at += BYTES[type]) {
        if (type === "F32") view.setFloat32(at, data[i]!, true);
        else if (type === "F16") view.setUint16(at, numberToHalf(data[i]!), true);
        else if (type === "BF16") view.setUint16(at, bfloat16(data[i]!), true);
        else view.setBigInt64(at, BigInt(data[i]!), true);
      }
    }
  });
}

/** Length, header and room for the tensors. */
export function fileOf(
  header: string,
  dataBytes: number,
  write: (view: DataView, start: number) => void = () => {},
): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + text.length + dataBytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, text.length, true);
  bytes.set(text, 8);
  write(view, 8 + text.length);
  return bytes;
}

/** The bits of the nearest bfloat16, ties to even. */
export function bfloat16(number: number): number {
  const bits = new Uint32Array(Float32Array.of(number).buffer)[0]!;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** A number as a file of this type gives it back. */
export function rounded(number: number, type: FileType): number {
  if (type === "BF16") return new Float32Array(Uint32Array.of(bfloat16(number) << 16).buffer)[0]!;
  if (type !== "F16") return Math.fround(number);
  const half = numberToHalf(number);
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  const magnitude = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return half & 0x8000 ? -magnitude : magnitude;
}
