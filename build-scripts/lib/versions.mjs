/** Every pinned version of the tools, in one place. */
export const versions = {
  /** Oldest Emscripten with the final relaxed-SIMD opcodes and clang 19; what Debian 13 has. */
  emscriptenMinimum: "3.1.69",
  /** Debian release whose packages are unpacked on an older Debian. */
  debianDonor: "trixie",
  /** The clang that Emscripten 3.1.69 is packaged with; Debian 12 and 13 both have it. */
  llvmMajor: "19",
  /** Emscripten's JavaScript optimiser is written on it. */
  acorn: "8.14.0",
  /** First xsimd with the WASM instruction set we rely on. */
  xsimdMinimum: "13.0",
  catch2Minimum: "3.7",
};
