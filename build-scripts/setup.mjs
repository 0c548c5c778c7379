/**
 * Gets whatever is missing: npm packages, Emscripten, xsimd, Catch2, Chromium. What is in place costs a few milliseconds.
 * By hand: npm run setup
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildDir } from "./lib/paths.mjs";
import { main } from "./lib/problem.mjs";
import { stampMatches, writeStamp } from "./lib/stamp.mjs";
import { ensureChromium } from "./tools/chromium.mjs";
import { checkNode, ensureHostTools } from "./tools/compiler.mjs";
import { ensureEmscripten } from "./tools/emscripten.mjs";
import { ensureCatch2, ensureXsimd } from "./tools/libraries.mjs";
import { ensureNodeModules } from "./tools/node-modules.mjs";

/**
 * @param {{ browser?: boolean }} [wanted] browser: a Chromium for the browser tests
 * @returns {Promise<{ generator: string, emscripten: { root: string, llvmBin?: string, version: string }, chromium?: string }>}
 */
export async function setUp({ browser = false } = {}) {
  checkNode();
  mkdirSync(buildDir, { recursive: true });
  const { generator } = await ensureHostTools();
  await ensureNodeModules();
  const emscripten = await ensureEmscripten();
  const xsimd = await ensureXsimd();
  const catch2 = await ensureCatch2();
  tellCMake({ ATTN_EMSCRIPTEN_ROOT: emscripten.root, FETCHCONTENT_SOURCE_DIR_XSIMD: xsimd, FETCHCONTENT_SOURCE_DIR_CATCH2: catch2 });
  const chromium = browser ? await ensureChromium() : undefined;
  return { generator, emscripten, chromium };
}

/** CMakeLists.txt and the toolchain file read this, so that presets work by hand too. */
function tellCMake(variables) {
  const text = Object.entries(variables)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `set(${name} "${value.replaceAll("\\", "/")}")\n`)
    .join("");
  const file = join(buildDir, "tools.cmake");
  if (!stampMatches(file, text)) writeStamp(file, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { emscripten, chromium } = await setUp({ browser: true });
    console.log(`Emscripten ${emscripten.version}: ${emscripten.root}`);
    console.log(`Chromium: ${chromium ?? "none; browser tests will be skipped"}`);
  });
}
