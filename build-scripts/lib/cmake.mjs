/** Configures and builds a CMake preset; a second time only what changed. */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { withLock } from "./lock.mjs";
import { buildDir, root } from "./paths.mjs";
import { checkCmakeVersion } from "../tools/compiler.mjs";
import { run } from "./run.mjs";
import { hashOf, stampMatches, writeStamp } from "./stamp.mjs";
import { step } from "./steps.mjs";

/**
 * @param {string} preset name in CMakePresets.json
 * @param {string} target
 * @param {string} generator of the set-up
 * @returns {Promise<string>} the build folder
 */
export async function cmakeBuild(preset, target, generator) {
  const folder = join(buildDir, preset);
  // Two commands at once in one clone must not run the same build.
  await withLock(`${folder}.lock`, () => step(`building ${target} (${preset})`, () => buildHere(preset, target, folder, generator)));
  return folder;
}

async function buildHere(preset, target, folder, generator) {
  // Each call of emcc starts Python: not through a version manager's shim, which takes longer than Python itself.
  process.env.EMSDK_PYTHON ||= spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).stdout?.trim() ?? "";
  await configure(preset, folder, generator);
  const output = await run("cmake", ["--build", folder, "--target", target, "--parallel", String(availableParallelism())], {
    cwd: root,
    sorry: `${target} (${preset}) does not compile: the first error stands above.`,
    show: firstErrors,
  });
  const warnings = output.split("\n").filter((line) => /: warning: /.test(line));
  if (warnings.length > 0) process.stderr.write(`\n${[...new Set(warnings)].join("\n")}\n`);
}

async function configure(preset, folder, generator) {
  const warningsAreErrors = process.env.CI ? "ON" : "OFF";
  const stamp = join(folder, ".configured");
  const wanted = hashOf(
    root,
    ["CMakePresets.json", "build/tools.cmake", "build-scripts/cmake/emscripten_toolchain.cmake"],
    `${generator} ${warningsAreErrors} ${process.env.CXX ?? ""}`,
  );
  if (stampMatches(stamp, wanted)) return; // CMake itself notices changes of CMakeLists.txt and of what it includes
  checkCmakeVersion();
  rmSync(folder, { recursive: true, force: true });
  await run("cmake", ["--preset", preset, "-G", generator, `-DATTN_WERROR=${warningsAreErrors}`], {
    cwd: root,
    sorry: `CMake could not configure ${preset}: see the lines above.`,
  });
  writeStamp(stamp, wanted);
}

/** The first compiler errors with what follows them: the end of a long build output is seldom the cause. */
function firstErrors(output) {
  const lines = output.split("\n");
  const first = lines.findIndex((line) => /\berror:|undefined symbol|CMake Error/i.test(line));
  return (first < 0 ? lines.slice(-30) : lines.slice(Math.max(0, first - 3), first + 30)).join("\n");
}
