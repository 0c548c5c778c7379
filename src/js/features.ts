/** What the engine can do, found out by validating tiny modules, written here byte by byte. No look at names or versions of browsers. */

/** A module from its bytes in hexadecimal, section by section. */
function bytes(...sections: string[]): Uint8Array<ArrayBuffer> {
  const digits = sections.join("").replaceAll(" ", "");
  return Uint8Array.from({ length: digits.length / 2 }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

const HEADER = "00 61 73 6d 01 00 00 00"; // magic, version 1
const TYPE = "01 05 01 60 00 01 7b"; // () -> v128
const FUNCTION = "03 02 01 00"; // one function of type 0
const SPLAT_ZERO = "41 00 fd 0f"; // i32.const 0, i8x16.splat

/** (module (func (result v128) (i8x16.splat (i32.const 0)))) */
const simdModule = () => bytes(HEADER, TYPE, FUNCTION, "0a 08 01 06 00", SPLAT_ZERO, "0b");

/** The same with f32x4.relaxed_madd (0xfd 0x105) of three splats. */
const relaxedSimdModule = () => bytes(HEADER, TYPE, FUNCTION, "0a 13 01 11 00", SPLAT_ZERO, SPLAT_ZERO, SPLAT_ZERO, "fd 85 02 0b");

/** True when the engine knows WebAssembly SIMD, which everything here needs. */
export function hasSimd(): boolean {
  return typeof WebAssembly === "object" && WebAssembly.validate(simdModule());
}

/** True when the engine knows relaxed SIMD with the final opcodes. */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(relaxedSimdModule());
}

/** Why threads can't be used here, as a sentence; undefined when they can. */
export function whyNoThreads(): string | undefined {
  if (typeof SharedArrayBuffer !== "function") {
    return "SharedArrayBuffer is not available: a page needs the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp";
  }
  if ((globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === false) return "the page is not cross-origin isolated";
  if (isNode()) return undefined;
  if (typeof Worker !== "function") return "this context can't start workers";
  return undefined;
}

/** True in Node.js and what behaves like it (not in a page of Electron, which has fetch and file access of its own). */
export function isNode(): boolean {
  const { process } = globalThis as { process?: { versions?: { node?: string }; type?: string } };
  return typeof process?.versions?.node === "string" && process.type !== "renderer";
}
