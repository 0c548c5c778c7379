/** float16 by its bits. Written from IEEE 754 and apart from the package's own conversion, which it judges. */

/** The number that these bits stand for. */
export function halfValue(bits) {
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The finite ones that are not negative, in order. */
const sizes = Float64Array.from({ length: 0x7c00 }, (_, bits) => halfValue(bits));

/** The bits of the float16 nearest to a number, ties to even: found by search among the finite ones of its sign. */
export function halfBits(number) {
  if (Number.isNaN(number)) return 0x7e00;
  const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0;
  const size = Math.abs(number);
  if (size >= 65520) return sign | 0x7c00;
  let low = 0; // the largest that is not above
  for (let step = 0x4000; step > 0; step >>= 1) if (low + step < sizes.length && sizes[low + step] <= size) low += step;
  const above = low + 1 < sizes.length ? sizes[low + 1] : 65536;
  const toLow = size - sizes[low];
  const toAbove = above - size;
  return sign | (toAbove < toLow || (toAbove === toLow && low % 2 === 1) ? low + 1 : low);
}
