/** Types of instances.mjs. */
import type { Attention } from "attention-wasm";

export declare function allowRelaxedSimd(): void;
export declare function shippedBinaries(): string[];
export declare function loadBinary(name: string): Promise<Attention>;
