/** Writes protocol buffers, as far as ONNX models need them. */
export function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Uint8Array.of(...bytes, Number(rest));
}

export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const integer = (field, value) => joined([varint(field * 8), varint(value)]);
export const bytes = (field, value) => joined([varint(field * 8 + 2), varint(value.length), value]);
export const text = (field, value) => bytes(field, new TextEncoder().encode(value));
export const message = (field, ...parts) => bytes(field, joined(parts));
