/** Puts dist/ together from the parts that were built, and nothing else: what lies there is what is packed. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { buildDir, distDir, root } from "./paths.mjs";
import { syncFolder } from "./files.mjs";
import { variants } from "./variants.mjs";

export function assemble() {
  const files = new Map();
  for (const name of readdirSync(join(buildDir, "js"))) files.set(name, readFileSync(join(buildDir, "js", name)));
  for (const { name, preset, glue } of variants) {
    files.set(`attention.${name}.wasm`, readFileSync(join(buildDir, preset, "attention.wasm")));
    files.set(glue, readFileSync(join(buildDir, preset, "attention.mjs")));
  }
  if (files.has("inline.js")) files.set("inline-binary.js", inlineBinary(files.get("attention.simd.wasm")));
  files.set("THIRD-PARTY-LICENSES.txt", readFileSync(join(root, "build-scripts/licenses/THIRD-PARTY-LICENSES.txt")));
  syncFolder(distDir, files);
}

/** The baseline binary as a string, for attention-wasm/inline; decoded without fetch, so it works under connect-src 'none'. */
function inlineBinary(wasm) {
  return `// attention.simd.wasm in base64\nexport default "${wasm.toString("base64")}";\n`;
}
