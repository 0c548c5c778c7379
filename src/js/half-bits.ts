/** Half-precision bits as numbers, one at a time: for small vectors. Whole tensors are converted in the core. */

const bits = new Uint32Array(1);
const value = new Float32Array(bits.buffer);

/** bfloat16: the upper half of a float32. */
export function bfloat16ToNumber(half: number): number {
  bits[0] = half << 16;
  return value[0]!;
}

/** float16 (IEEE binary16), exactly. */
export function halfToNumber(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The bits of the float16 nearest to `number` (ties to even); beyond 65504 it is infinite, as IEEE 754 says. */
export function numberToHalf(number: number): number {
  value[0] = number;
  const word = bits[0]!;
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // 65520 and more round to infinity
  // Normal: move the exponent from bias 127 to 15 and drop 13 bits; a carry runs into the exponent, which is what rounding up means.
  if (magnitude >= 0x38800000) return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  // Subnormal: a multiple of 2^-24.
  const units = Math.abs(value[0]!) * 2 ** 24;
  const down = Math.floor(units);
  const rest = units - down;
  return sign | (rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down);
}
