/**
 * `attention-wasm/inline`: the same package with the baseline WebAssembly file inside the JavaScript, for one-file use. Nothing is fetched.
 */
import { checkOptionNames, failWith } from "./errors.js";
import { hasSimd } from "./features.js";
import createGlue from "./glue.js";
import base64 from "./inline-binary.js";
import { createInstance, type Attention } from "./instance.js";
import { failSelfTest, instantiate, selfTest } from "./instantiate.js";
import { compileSource } from "./wasm-source.js";

export * from "./exports.js";

let compiled: Promise<WebAssembly.Module> | undefined;

/**
 * Gives an instance of the baseline build that this entry carries inside, with one thread. No options.
 *
 * @throws (as a rejection) AttentionError `"load"` when the engine has no SIMD, may not compile WebAssembly, or computes wrong numbers.
 */
export async function loadAttention(options: Record<string, never> = {}): Promise<Attention> {
  checkOptionNames(options, new Set(), "options");
  if (!hasSimd())
    failWith(
      "load",
      "This engine has no WebAssembly SIMD, which attention-wasm needs (Chrome 91, Firefox 89, Safari 16.4, Node 18 or newer).",
    );
  compiled ??= compileSource(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
  compiled.catch(() => (compiled = undefined));
  const engine = await instantiate(createGlue, await compiled, "attention-wasm/inline");
  const wrong = selfTest(engine);
  if (wrong !== undefined) failSelfTest("attention-wasm/inline", wrong);
  return createInstance(engine, {
    variant: "simd",
    reason: "the build inside attention-wasm/inline",
    threads: 1,
    threadsReason: "1 thread: the build inside has no others",
  });
}
