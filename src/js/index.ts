/**
 * attention-wasm: attention in WebAssembly SIMD.
 *
 * ```ts
 * import { loadAttention, tensor } from "attention-wasm";
 *
 * const attn = await loadAttention();
 * const { output } = attn.scaledDotProductAttention(query, key, value, { causal: true });
 * ```
 *
 * @packageDocumentation
 */
export * from "./exports.js";
export { loadAttention, type LoadOptions } from "./load.js";
export type { WasmSource } from "./wasm-source.js";
