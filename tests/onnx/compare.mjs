import { halfValue } from "./half.mjs";

/** What counts as equal. ONNX's own runner allows rtol 1e-3; a float32 kernel needs no more than this. */
export const tolerance = { rtol: 2e-6, atol: 1e-6, ulps: 1 };

/** What is wrong with a result, in words; undefined when nothing is. */
export function difference(expected, actual) {
  if (actual === undefined) return "is missing";
  const type =
    actual.data instanceof Float32Array
      ? "float32"
      : actual.dtype === "float16" && actual.data instanceof Uint16Array
        ? "float16"
        : "another type";
  if (type !== expected.type) return `is ${type}, expected ${expected.type}`;
  const shape = `[${actual.shape}]`;
  if (shape !== `[${expected.shape}]`) return `has shape ${shape}, expected [${expected.shape}]`;
  if (actual.data.length !== expected.data.length) return `has ${actual.data.length} elements, expected ${expected.data.length}`;
  const isEqual = type === "float16" ? isWithinUlps : isClose;
  const wrong = [];
  for (let i = 0; i < expected.data.length; i++) if (!isEqual(actual.data[i], expected.data[i])) wrong.push(i);
  if (wrong.length === 0) return undefined;
  const [first] = wrong;
  const show = type === "float16" ? halfValue : (x) => x;
  return `differs in ${wrong.length} of ${expected.data.length} elements, first at ${first}: ${show(actual.data[first])}, expected ${show(expected.data[first])}`;
}

/** NaN equals NaN; an infinity equals only itself. */
function isClose(actual, expected) {
  if (Number.isNaN(expected)) return Number.isNaN(actual);
  if (!Number.isFinite(expected)) return actual === expected;
  return Math.abs(actual - expected) <= tolerance.atol + tolerance.rtol * Math.abs(expected);
}

/** The same for float16 by its bits: infinity and the number below it are one unit apart, so infinities are compared first. */
function isWithinUlps(actual, expected) {
  const isSpecial = (bits) => (bits & 0x7c00) === 0x7c00;
  const isNaNBits = (bits) => isSpecial(bits) && (bits & 0x3ff) !== 0;
  if (isNaNBits(expected)) return isNaNBits(actual);
  if (isSpecial(expected) || isSpecial(actual)) return actual === expected;
  return Math.abs(ordered(actual) - ordered(expected)) <= tolerance.ulps;
}

/** Bits as whole numbers in the order of the values; both zeros are 0. */
function ordered(bits) {
  return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}
