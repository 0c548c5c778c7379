/** `loadAttention`: which file, with how many threads, and why. */
import type { Engine } from "./engine.js";
import { checkOptionNames, describeValue, fail, failWith } from "./errors.js";
import { hasRelaxedSimd, hasSimd, isNode, whyNoThreads } from "./features.js";
import createGlue from "./glue.js";
import type { GlueFactory } from "./glue-module.js";
import { createInstance, type Attention, type Selection } from "./instance.js";
import { failSelfTest, instantiate, needsThreads, selfTest, variantOf, type Variant } from "./instantiate.js";
import { compileSource, compileUrl, failLoad, messageOf, type WasmSource } from "./wasm-source.js";

/** Options of `loadAttention`. For each one only `undefined` means "not given". */
export interface LoadOptions {
  /**
   * Where the WebAssembly file comes from, when it is not found by itself (a content delivery network, an edge runtime that wants a ready Module):
   * its URL (in Node also a path), its bytes, a `Response`, a `WebAssembly.Module`, or a promise of one of these. Default: the file beside this module.
   */
  wasm?: WasmSource | PromiseLike<WasmSource> | undefined;
  /**
   * Which build: `"relaxed"` has fused multiply-add and is faster, `"simd"` runs everywhere. Default: `"auto"`, the relaxed one where the engine
   * accepts it and it passes the self-test. Asking for one by name is an error where it can't be had.
   */
  variant?: "auto" | Variant | undefined;
  /**
   * Number of threads, the calling one included. More than 1 needs SharedArrayBuffer (a cross-origin isolated page, or Node); without it the instance
   * has one thread and `selection.threadsReason` says why. Results do not depend on it. Default: 1.
   */
  threads?: number | undefined;
}

const OPTION_NAMES: ReadonlySet<string> = new Set(["wasm", "variant", "threads"]);
const MAX_THREADS = 64;
/** A pool that has not started after this time will not: blocked workers report nothing. */
const THREADS_TIMEOUT_MS = 10_000;

/**
 * Loads the package's WebAssembly and gives an instance of its own. Concurrent loads share one fetch and one compilation; a load that failed can be tried again.
 *
 * ```ts
 * const attn = await loadAttention();
 * const { output } = attn.scaledDotProductAttention(query, key, value, { causal: true });
 * ```
 *
 * @returns An instance. It needs no release unless it has threads, whose workers `dispose()` ends.
 * @throws (as a rejection) AttentionError `"load"` when the file can't be had, is something else (the message names the URL and says what was found), when
 *   the engine has no SIMD or computes wrong numbers; `"option"` for wrong options.
 */
export async function loadAttention(options: LoadOptions = {}): Promise<Attention> {
  checkOptionNames(options, OPTION_NAMES, "options");
  const { wasm, variant = "auto", threads = 1 } = options;
  if (variant !== "auto" && variant !== "simd" && variant !== "relaxed")
    fail("option", "options.variant", '"auto", "simd" or "relaxed"', describeValue(variant));
  if (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS) {
    fail("option", "options.threads", `a whole number from 1 to ${MAX_THREADS}`, describeValue(threads));
  }
  // A ready Module was compiled somewhere; engines that forbid compiling need not be asked.
  const isCompiled = typeof WebAssembly === "object" && wasm instanceof WebAssembly.Module;
  if (!isCompiled && !hasSimd())
    failWith(
      "load",
      "This engine has no WebAssembly SIMD, which attention-wasm needs (Chrome 91, Firefox 89, Safari 16.4, Node 18 or newer).",
    );
  if (wasm !== undefined) return loadGiven(wasm, variant, threads);

  const obstacle = threads > 1 ? whyNoThreads() : undefined;
  const one = threads > 1 ? `1 thread: ${obstacle}` : "1 thread, as asked for";
  if (threads > 1 && obstacle === undefined) {
    try {
      return await loadVariant(variant, threads);
    } catch (error) {
      // Without threads the same is computed, only slower: a blocked worker is no reason to fail.
      const instance = await loadVariant(variant, 1, `1 thread: ${messageOf(error)}`);
      return instance;
    }
  }
  return loadVariant(variant, 1, one);
}

// Addresses are written out, one by one: bundlers find files only in this very form.
function fileUrl(variant: Variant, hasThreads: boolean): URL {
  const isRelaxed = variant === "relaxed";
  const url = hasThreads
    ? isRelaxed
      ? new URL("./attention.relaxed-threads.wasm", import.meta.url)
      : new URL("./attention.simd-threads.wasm", import.meta.url)
    : isRelaxed
      ? new URL("./attention.relaxed.wasm", import.meta.url)
      : new URL("./attention.simd.wasm", import.meta.url);
  // The development server of Vite before version 8 copies the JavaScript of packages elsewhere and leaves these addresses as they were.
  return new URL(url.href.replace(/\/node_modules\/\.vite\/deps[^/]*\//, "/node_modules/attention-wasm/dist/"));
}

/** The relaxed build where it is wanted and works, else the baseline. */
async function loadVariant(variant: "auto" | Variant, threads: number, threadsReason?: string): Promise<Attention> {
  let reason: string;
  if (variant === "simd") {
    reason = "asked for by name";
  } else if (!hasRelaxedSimd()) {
    if (variant === "relaxed")
      failWith("load", 'This engine has no relaxed SIMD; variant "auto" or "simd" works in it.', { argument: "options.variant" });
    reason = "the engine has no relaxed SIMD";
  } else {
    try {
      const { engine, wrong } = await loadFile("relaxed", threads);
      if (wrong === undefined)
        return finish(
          engine,
          variant === "auto" ? "the engine has relaxed SIMD, and it passed the self-test" : "asked for by name",
          threadsReason,
        );
      engine.dispose();
      if (variant === "relaxed") failSelfTestOfRelaxed(wrong);
      reason = `the relaxed build failed the self-test (${wrong})`;
    } catch (error) {
      if (variant === "relaxed") throw error;
      reason = `the relaxed build could not be loaded (${messageOf(error)})`;
    }
  }
  const { engine, wrong, name } = await loadFile("simd", threads);
  if (wrong !== undefined) {
    engine.dispose();
    failSelfTest(name, wrong);
  }
  return finish(engine, reason, threadsReason);
}

function failSelfTestOfRelaxed(wrong: string): never {
  return failWith("load", `The relaxed build computes wrong numbers in this engine (${wrong}); variant "auto" or "simd" works in it.`, {
    argument: "options.variant",
  });
}

async function loadFile(variant: Variant, threads: number): Promise<{ engine: Engine; wrong: string | undefined; name: string }> {
  const url = fileUrl(variant, threads > 1);
  const module = await compileUrl(url);
  const engine = threads > 1 ? await withThreads(module, url.href, threads) : await instantiate(createGlue, module, url.href);
  return { engine, wrong: selfTest(engine), name: url.href };
}

/** A file, or what came of it, that the caller hands in: its build is what it is. */
async function loadGiven(wasm: NonNullable<LoadOptions["wasm"]>, variant: "auto" | Variant, threads: number): Promise<Attention> {
  const module = await compileSource(wasm);
  const name = wasm instanceof URL || typeof wasm === "string" ? String(wasm) : "options.wasm";
  let engine: Engine;
  let threadsReason: string | undefined;
  if (needsThreads(module)) {
    const obstacle = whyNoThreads();
    if (obstacle !== undefined)
      failWith("load", `${name}: this build has threads, which can't be used here (${obstacle})`, { argument: name });
    engine = await withThreads(module, name, threads);
  } else {
    engine = await instantiate(createGlue, module, name);
    threadsReason = threads > 1 ? "1 thread: the given file was built without threads" : "1 thread, as asked for";
  }
  const loaded = variantOf(engine);
  if (variant !== "auto" && variant !== loaded) {
    engine.dispose();
    failLoad(name, `the ${loaded} build where options.variant asks for the ${variant} one`);
  }
  const wrong = selfTest(engine);
  if (wrong !== undefined) {
    engine.dispose();
    if (loaded === "relaxed") failSelfTestOfRelaxed(wrong);
    failSelfTest(name, wrong);
  }
  return finish(engine, "the given file", threadsReason);
}

// A thread is a worker that loads the glue again, in Node through node:worker_threads. Bundlers for browsers must not follow the way to that file.
async function threadsGlue(): Promise<GlueFactory> {
  if (!isNode()) return (await import("./glue-threads-web.js")).default;
  const path = "./glue-threads-node.js";
  return ((await import(/* webpackIgnore: true */ /* @vite-ignore */ path)) as { default: GlueFactory }).default;
}

/** Whether this thread may sleep (Atomics.wait): not the main thread of a page, nor a service worker. */
function mayBlock(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0); // returns at once: 0 is not 1
    return true;
  } catch {
    return false;
  }
}

async function withThreads(module: WebAssembly.Module, name: string, threads: number): Promise<Engine> {
  const engine = await instantiate(await threadsGlue(), module, name);
  try {
    engine.glue.startThreads(threads, mayBlock());
    const deadline = Date.now() + THREADS_TIMEOUT_MS;
    // Workers start only while this thread is back in its event loop.
    while (!engine.glue.threadsReady()) {
      if (Date.now() > deadline) throw new Error(`the workers did not start within ${THREADS_TIMEOUT_MS / 1000} seconds`);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  } catch (error) {
    engine.dispose();
    throw error;
  }
  return engine;
}

function finish(engine: Engine, reason: string, threadsReason: string | undefined): Attention {
  const threads = engine.glue.threadCount();
  const selection: Selection = {
    variant: variantOf(engine),
    reason,
    threads,
    threadsReason: threadsReason ?? `${threads} thread${threads === 1 ? "" : "s"}, as asked for`,
  };
  return createInstance(engine, selection);
}
