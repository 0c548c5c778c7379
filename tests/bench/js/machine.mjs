/** Where and with what the numbers came about: without it they say nothing. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, release, type } from "node:os";
import { join } from "node:path";
import { installDir } from "../../../build-scripts/pack.mjs";

/** The package as users get it: packed and installed. Inside this repository its name alone would lead Node to dist/. */
export const packageFolder = join(installDir, "node_modules/attention-wasm");

const wasmFiles = ["attention.simd.wasm", "attention.relaxed.wasm", "attention.simd-threads.wasm", "attention.relaxed-threads.wasm"];

/** SHA-256 of each binary that is measured; tests/package compares them with those in the tarball. */
export function binaryHashes() {
  return Object.fromEntries(
    wasmFiles.map((name) => {
      const bytes = readFileSync(join(packageFolder, "dist", name));
      return [name, createHash("sha256").update(bytes).digest("hex")];
    }),
  );
}

export function describeMachine({ stage, emscripten, peers }) {
  return {
    cpu: cpus()[0]?.model.trim(),
    cores: availableParallelism(),
    system: `${type()} ${release()}`,
    runtime: stage.name,
    flags: stage.flags,
    emscripten,
    package: JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")).version,
    peers,
    binaries: binaryHashes(),
  };
}
