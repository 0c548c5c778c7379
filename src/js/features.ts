/** What the engine can do, found out by validating tiny modules, written here byte by byte. No look at names or versions of browsers. */

// (module (func (result v128) (i8x16.splat (i32.const 0))))
const SIMD_MODULE = [
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0, // magic, version 1
  1,
  5,
  1,
  96,
  0,
  1,
  123, // type section: () -> v128
  3,
  2,
  1,
  0, // function section: one function of type 0
  10,
  8,
  1,
  6,
  0,
  65,
  0,
  253,
  15,
  11, // code: i32.const 0, i8x16.splat, end
];

// (module (func (result v128) (f32x4.relaxed_madd (splat 0) (splat 0) (splat 0))))
const RELAXED_SIMD_MODULE = [
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  5,
  1,
  96,
  0,
  1,
  123,
  3,
  2,
  1,
  0,
  10,
  19,
  1,
  17,
  0,
  65,
  0,
  253,
  15,
  65,
  0,
  253,
  15,
  65,
  0,
  253,
  15,
  253,
  133,
  2,
  11, // three splats, f32x4.relaxed_madd (0x105)
];

/** True when the engine knows WebAssembly SIMD, which everything here needs. */
export function hasSimd(): boolean {
  return typeof WebAssembly === "object" && WebAssembly.validate(Uint8Array.from(SIMD_MODULE));
}

/** True when the engine knows relaxed SIMD with the final opcodes. */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(Uint8Array.from(RELAXED_SIMD_MODULE));
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
