/** Keys and values that are in WASM memory already and that a call reads in place: what `scaledDotProductAttention` needs to know of a cache. */
import type { Engine } from "./engine.js";

/** Distances between neighbours along each axis, in elements. Rows (one head's key or value at one position) are contiguous. */
export interface KvStrides {
  readonly batch: number;
  readonly head: number;
  readonly row: number;
}

/**
 * Base class of caches. `scaledDotProductAttention(query, source, options)` recognises it by `instanceof` and reads the members once per call, after
 * `checkUsable`. Memory must not move between that and the end of the call, which holds as long as members have no side effects.
 *
 * Keys are in order of position, valid from the first row on: row j of batch row b is visible while j < lengths[b].
 * The queries of a call are the last positions: query t of batch row b stands at lengths[b] - seqLenQ + t.
 */
export abstract class KvSource {
  /** The instance whose memory it is. */
  abstract get engine(): Engine;
  abstract get batchSize(): number;
  abstract get numKvHeads(): number;
  abstract get headDim(): number;
  abstract get valueDim(): number;
  /** `KvType.f32` or `KvType.f16` (attention-block.ts), for keys and values alike. */
  abstract get kvType(): number;
  /** Whether it is certain that float16 keys and values hold no infinity and no NaN; the core need not look then. */
  get isFinite(): boolean {
    return false;
  }
  abstract get keyPointer(): number;
  abstract get valuePointer(): number;
  abstract get keyStrides(): KvStrides;
  abstract get valueStrides(): KvStrides;
  /** Number of valid positions per batch row; not to be changed by the caller. */
  abstract get lengths(): Int32Array;
  /** The last positions that each query sees, its own included; 0 = all. Calls limit their window by it. */
  get window(): number {
    return 0;
  }
  /** Throws "disposed" when it can't be used any more. */
  abstract checkUsable(argument: string): void;
}
