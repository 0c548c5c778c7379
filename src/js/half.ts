/** float16 by its bits, for the few places that convert in JavaScript. Tensors that are computed with are converted in WebAssembly, see operands.ts. */

const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

/** The bits of the float16 nearest to `value` (ties to even); beyond 65504 it is infinite, as IEEE 754 says. */
export function halfBits(value: number): number {
  float[0] = value;
  const bits = floatBits[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // 65520 and more round to infinity
  // Normal: move the exponent from bias 127 to 15 and drop 13 bits; a carry runs into the exponent, which is what rounding up means.
  if (magnitude >= 0x38800000) return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  // Subnormal: a multiple of 2^-24.
  const units = Math.abs(float[0]!) * 2 ** 24;
  const down = Math.floor(units);
  const rest = units - down;
  return sign | (rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down);
}

/** The number that these float16 bits stand for. */
export function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}
