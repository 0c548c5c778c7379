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
