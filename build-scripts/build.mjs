/**
 * Builds what is published into dist/: the WebAssembly binaries with their glue, and the JavaScript with its types.
 * By hand: npm run build, npm run build:wasm, npm run build:js
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assemble } from "./lib/assemble.mjs";
import { cmakeBuild } from "./lib/cmake.mjs";
import { buildDir, root } from "./lib/paths.mjs";
import { main, Problem } from "./lib/problem.mjs";
import { run } from "./lib/run.mjs";
import { hashOf, stampMatches, writeStamp } from "./lib/stamp.mjs";
import { step } from "./lib/steps.mjs";
import { variants } from "./lib/variants.mjs";
import { emptyFolder } from "./lib/files.mjs";
import { setUp } from "./setup.mjs";

/** Sets up what is missing and builds; a second time only what changed. */
export async function build({ what = "all", browser = false } = {}) {
  const tools = await setUp({ browser });
  if (what !== "js") await buildWasm(tools);
  if (what !== "wasm") await buildJs();
  if (what === "all") assemble();
  return tools;
}

/** What the binaries are made from; equal means that not even CMake has to be asked, which takes half a second per preset. */
const wasmInputs = [
  "src/include",
  "src/core",
  "src/kernels",
  "src/bindings",
  "CMakeLists.txt",
  "CMakePresets.json",
  "build-scripts/cmake",
  "build/tools.cmake",
];

async function buildWasm({ generator }) {
  const wanted = hashOf(root, wasmInputs, `${generator} ${process.env.CI ?? ""}`);
  for (const { preset, glues } of variants) {
    const stamp = join(buildDir, preset, ".built");
    const isThere = existsSync(join(buildDir, preset, glues[0].from));
    if (isThere && stampMatches(stamp, wanted)) continue;
    await cmakeBuild(preset, "attn_wasm", generator);
    writeStamp(stamp, wanted);
  }
}

/** Plain tsc: what is published is the source without its types, file by file. */
async function buildJs() {
  const stamp = join(buildDir, "js.stamp");
  const wanted = hashOf(root, ["src/js", "package-lock.json"]);
  const out = join(buildDir, "js");
  if (stampMatches(stamp, wanted) && existsSync(out)) return;
  await step("compiling TypeScript", async () => {
    emptyFolder(out); // a file whose source is gone must not be published
    await run(join(root, "node_modules/.bin/tsc"), ["-p", join(root, "src/js/tsconfig.json"), "--outDir", out], {
      cwd: root,
      sorry: "The TypeScript of src/js does not compile: the errors stand above.",
    });
    writeStamp(stamp, wanted);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const what = process.argv[2] ?? "all";
    if (!["all", "wasm", "js"].includes(what)) throw new Problem(`'${what}' is not known: say wasm, js or nothing.`);
    await build({ what });
  });
}
