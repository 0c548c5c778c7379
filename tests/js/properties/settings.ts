/** How much is drawn, and from which seed: the same for all properties. */
import fc from "fast-check";
import type { Attention } from "attention-wasm";
import { allowRelaxedSimd, loadBinary, shippedBinaries } from "../../onnx/instances.mjs";

/** Seed of every draw: a new one each time, unless ATTENTION_SEED repeats an earlier run. */
export const seed = process.env.ATTENTION_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.ATTENTION_SEED);

/** Number of drawn calls of the two comparisons with other implementations. ATTENTION_RUNS overrides it; laws draw a tenth of it each. */
export const runs = Number(process.env.ATTENTION_RUNS ?? 2000);

fc.configureGlobal({ seed });
console.log(`properties: seed ${seed}, ${runs} runs (repeat with ATTENTION_SEED=${seed} ATTENTION_RUNS=${runs})`);

/** Every binary that ships and runs in this engine. */
export async function loadAll(): Promise<{ name: string; attn: Attention }[]> {
  allowRelaxedSimd();
  return Promise.all(shippedBinaries().map(async (name) => ({ name, attn: await loadBinary(name) })));
}
