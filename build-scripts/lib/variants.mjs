/**
 * The WebAssembly binaries that ship, in the order of DESIGN.md: the CMake preset that makes each, the file it is made as, and the
 * glue that is made with it. Binaries that name the same glue share it, and the build checks that it is the same bytes.
 */
import { editNodeGlue, editWebGlue } from "./glue.mjs";

const single = [{ from: "attention.mjs", to: "glue.js", edit: (text) => text }];
const threaded = [
  { from: "glue-threads-web.js", to: "glue-threads-web.js", edit: editWebGlue },
  { from: "glue-threads-node.js", to: "glue-threads-node.js", edit: editNodeGlue },
];

export const variants = [
  { wasm: "attention.simd.wasm", preset: "wasm-simd", glues: single },
  { wasm: "attention.relaxed.wasm", preset: "wasm-relaxed", glues: single },
  { wasm: "attention.simd-threads.wasm", preset: "wasm-simd-threads", glues: threaded },
  { wasm: "attention.relaxed-threads.wasm", preset: "wasm-relaxed-threads", glues: threaded },
];
