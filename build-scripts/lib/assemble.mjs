/** Puts dist/ together from the parts that were built, and nothing else: what lies there is what is packed. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder } from "./files.mjs";
import { buildDir, distDir, root } from "./paths.mjs";
import { Problem } from "./problem.mjs";
import { variants } from "./variants.mjs";

export function assemble() {
  const files = new Map();
  for (const name of readdirSync(join(buildDir, "js"))) files.set(name, readFileSync(join(buildDir, "js", name)));
  for (const variant of variants) addVariant(files, variant);
  files.set("inline-binary.js", inlineBinary(files.get("attention.simd.wasm")));
  files.set("THIRD-PARTY-LICENSES.txt", readFileSync(join(root, "build-scripts/licenses/THIRD-PARTY-LICENSES.txt")));
  syncFolder(distDir, files);
}

function addVariant(files, { wasm, preset, glues }) {
  const built = (name) => readFileSync(join(buildDir, preset, name));
  for (const { from, to, edit } of glues) {
    addOnce(files, wasm, built(from.replace(/\.m?js$/, ".wasm")), `the WebAssembly of ${preset} beside ${from}`);
    addOnce(files, to, Buffer.from(edit(built(from).toString())), `the glue of ${preset}`);
  }
}

/** One glue serves two binaries, and one binary two glues: right only while Emscripten makes the same bytes each time. */
function addOnce(files, name, content, what) {
  const earlier = files.get(name);
  if (earlier !== undefined && !earlier.equals(content)) {
    throw new Problem(
      `${what} differs from the ${name} that another build made, but one ${name} ships for both: all builds must import and export ` +
        "the same names (compare them in build/).",
    );
  }
  files.set(name, content);
}

/** The baseline binary as text, for attention-wasm/inline: decoded without fetch, so it works under connect-src 'none'. */
function inlineBinary(wasm) {
  return `// attention.simd.wasm in base64\nexport default "${wasm.toString("base64")}";\n`;
}
