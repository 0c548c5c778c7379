/** The WebAssembly binaries that ship: their CMake preset, and which JavaScript glue loads them. */
export const variants = [
  { name: "simd", preset: "wasm-simd", glue: "glue.js" },
  { name: "relaxed", preset: "wasm-relaxed", glue: "glue.js" },
];
