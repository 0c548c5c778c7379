/** One instance of the installed package for each binary that it ships. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { loadAttention } from "attention-wasm";

/** Node 20 knows relaxed SIMD behind a flag; newer versions have it by default. Has to run before the first WebAssembly is compiled. */
export function allowRelaxedSimd() {
  if (Number(process.versions.node.split(".")[0]) < 22) setFlagsFromString("--experimental-wasm-relaxed-simd");
}

/** Names of the binaries that ship, "simd", "relaxed", "simd-threads" …: whatever lies in the installed package. */
export function shippedBinaries() {
  const folder = fileURLToPath(new URL(".", import.meta.resolve("attention-wasm")));
  return readdirSync(folder)
    .map((file) => /^attention\.(.+)\.wasm$/.exec(file)?.[1])
    .filter((name) => name !== undefined)
    .sort();
}

/** Loads a binary by its name. Rejects where the engine does not run it. */
export async function loadBinary(name) {
  const [variant, hasThreads] = [name.split("-")[0], name.endsWith("-threads")];
  const attn = await loadAttention({ variant, threads: hasThreads ? 2 : 1 });
  if (hasThreads && attn.threads < 2) throw new Error(attn.selection.threadsReason);
  return attn;
}
