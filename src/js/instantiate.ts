/** From a compiled module to a working instance: Emscripten's glue, the check of its version, and the self-test. */
import { ATTENTION_BLOCK_WORDS } from "./attention-block.js";
import { Engine } from "./engine.js";
import { failWith } from "./errors.js";
import { ABI_VERSION, BuildFlag, type GlueFactory, type GlueModule } from "./glue-module.js";
import { KV_APPEND_BLOCK_WORDS } from "./kv-cache-block.js";
import { PROJECTION_BLOCK_WORDS } from "./projection-block.js";
import { ROTARY_BLOCK_WORDS } from "./rotary-block.js";
import { scaledDotProductAttention } from "./scaled-dot-product-attention.js";
import { SELF_ATTENTION_BLOCK_WORDS } from "./self-attention-block.js";
import { failLoad, messageOf } from "./wasm-source.js";

/** The builds, by what they need. */
export type Variant = "simd" | "relaxed";

/** Makes an instance of a module that came from `name`. Rejects with "load" for anything that is not this version's file; never stays pending. */
export async function instantiate(factory: GlueFactory, module: WebAssembly.Module, name: string): Promise<Engine> {
  let glue: GlueModule;
  try {
    glue = await new Promise<GlueModule>((resolve, reject) => {
      factory({
        // The glue itself does not learn of failures in here, and would wait for ever: they go to `reject`.
        instantiateWasm(imports, receive) {
          WebAssembly.instantiate(module, imports)
            .then((instance) => receive(instance, module))
            .catch(reject);
          return {};
        },
        onAbort: reject,
        print: ignore,
        printErr: ignore,
      }).then(resolve, reject);
    });
    if (typeof glue.abiVersion !== "function") throw new Error("it has no version number");
    const version = glue.abiVersion();
    if (version !== ABI_VERSION) throw new Error(`its interface has version ${version}, this JavaScript needs ${ABI_VERSION}`);
    if (
      glue.attentionBlockBytes() !== 4 * ATTENTION_BLOCK_WORDS ||
      glue.projectionBlockBytes() !== 4 * PROJECTION_BLOCK_WORDS ||
      glue.selfAttentionBlockBytes() !== 4 * SELF_ATTENTION_BLOCK_WORDS ||
      glue.rotaryBlockBytes() !== 4 * ROTARY_BLOCK_WORDS ||
      glue.kvAppendBlockBytes() !== 4 * KV_APPEND_BLOCK_WORDS
    ) {
      throw new Error("its parameter blocks have another size");
    }
  } catch (cause) {
    return failLoad(name, `a WebAssembly file of something else or of another version (${messageOf(cause)})`, cause);
  }
  return new Engine(glue);
}

function ignore(): void {}

/** Which build an instance is of. */
export function variantOf(engine: Engine): Variant {
  return (engine.glue.buildFlags() & BuildFlag.relaxed) !== 0 ? "relaxed" : "simd";
}

/** True for a module that was built with threads: it takes its memory, which is shared, from outside. */
export function needsThreads(module: WebAssembly.Module): boolean {
  return WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory");
}

/**
 * Computes one tiny case and compares it with the formula. Some engines have compiled SIMD code wrongly, and relaxed instructions may differ between
 * machines; such an instance must not be handed out. Widths are not multiples of a vector, so that tails are computed as well.
 *
 * @returns What is wrong, in words; undefined when all is well.
 */
export function selfTest(engine: Engine): string | undefined {
  const heads = 2,
    length = 9,
    width = 13;
  const wave = (seed: number): Float32Array =>
    Float32Array.from({ length: heads * length * width }, (_, i) => Math.sin(i * seed + seed) * 1.5);
  const query = wave(0.7),
    key = wave(1.3),
    value = wave(2.1);
  const shape = [heads, length, width];
  let output: ArrayLike<number>;
  try {
    const options = { causal: true } as const;
    output = scaledDotProductAttention(engine, { data: query, shape }, { data: key, shape }, { data: value, shape }, options).output.data;
  } catch (error) {
    return messageOf(error);
  }
  for (let row = 0; row < heads * length; row++) {
    const first = row - (row % length);
    const weights: number[] = [];
    for (let other = first; other <= row; other++) {
      let dot = 0;
      for (let d = 0; d < width; d++) dot += query[row * width + d]! * key[other * width + d]!;
      weights.push(Math.exp(dot / Math.sqrt(width)));
    }
    const sum = weights.reduce((a, b) => a + b, 0);
    for (let d = 0; d < width; d++) {
      let expected = 0;
      for (const [i, weight] of weights.entries()) expected += (weight / sum) * value[(first + i) * width + d]!;
      const got = output[row * width + d]!;
      if (!(Math.abs(got - expected) <= 1e-5)) return `element ${row * width + d} of the known case is ${got} instead of ${expected}`;
    }
  }
  return undefined;
}

/** Throws the "load" error for a build that computes wrong numbers. */
export function failSelfTest(name: string, what: string): never {
  return failWith(
    "load",
    `${name}: this engine computes wrong numbers with the baseline build (${what}); attention-wasm can't be used in it`,
    {
      argument: name,
      expected: "the known result of a small case",
      got: what,
    },
  );
}
