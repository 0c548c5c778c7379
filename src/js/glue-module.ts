/**
 * What the Emscripten module offers, as `src/bindings/*.cpp` binds it. Numbers only: pointers are byte addresses in the module's memory,
 * sizes in bytes are named so, and all others count elements. Nothing outside this folder sees these names.
 */

/** Results of the C++ API, `attn::Status` in src/include/attn/status.h. */
export const Status = {
  ok: 0,
  invalidShape: 1,
  invalidOption: 2,
  missingPointer: 3,
  scratchTooSmall: 4,
  outOfMemory: 5,
} as const;

/** Changes whenever a block's layout or a bound function changes; `kAbiVersion` in src/bindings/abi.h is the same number. */
export const ABI_VERSION = 2;

/** Bits of {@link GlueModule.buildFlags}. */
export const BuildFlag = { relaxed: 1, threads: 2 } as const;

/** An instance of the module. */
export interface GlueModule {
  readonly wasmMemory: WebAssembly.Memory;
  /** Only in builds with threads. */
  readonly PThread?: { terminateAllThreads(): void };

  // src/bindings/module.cpp
  abiVersion(): number;
  buildFlags(): number;
  /** `mayBlock`: the calling thread may sleep while it waits for the others. */
  startThreads(count: number, mayBlock: boolean): number;
  stopThreads(): void;
  threadCount(): number;
  threadsReady(): boolean;

  // src/bindings/memory.cpp
  /** Address of `bytes` bytes, a multiple of 64; 0 when there is no room. */
  allocate(bytes: number): number;
  release(pointer: number): void;
  bytesInUse(): number;
  peakBytes(): number;
  maximumBytes(): number;

  // src/bindings/attention.cpp, projection.cpp, half.cpp: each takes a block or plain numbers and returns a Status
  attentionBlockBytes(): number;
  attentionForward(block: number): number;
  projectionBlockBytes(): number;
  packedElements(numGroups: number, groupDim: number, inDim: number): number;
  packMatrix(block: number): number;
  project(block: number): number;
  halfToFloat(source: number, target: number, elements: number): void;
  floatToHalf(source: number, target: number, elements: number): void;

  // src/bindings/self_attention.cpp, rotary.cpp, kv_cache.cpp: the same
  selfAttentionBlockBytes(): number;
  selfAttention(block: number): number;
  rotaryBlockBytes(): number;
  rotaryEmbedding(block: number): number;
  kvAppendBlockBytes(): number;
  kvCacheAppend(block: number): number;
  /** `cache`, `from` and `to` are the cache's words at the start of a block; `first`, `sources` and `scratch` are addresses of int32. */
  kvCacheDropFront(cache: number, first: number): number;
  kvCacheReorder(cache: number, sources: number, scratch: number): number;
  kvCacheCopy(from: number, to: number): number;
}

/** Emscripten's factory (`-sMODULARIZE -sEXPORT_ES6`), with what is used of its settings. */
export type GlueFactory = (settings: {
  instantiateWasm(
    imports: WebAssembly.Imports,
    receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): Record<string, never>;
  onAbort(reason: unknown): void;
  print(text: string): void;
  printErr(text: string): void;
}) => Promise<GlueModule>;
