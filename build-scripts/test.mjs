/**
 * npm test: sets up, builds and runs everything. With names, only those stages (see `groups`):
 *   node build-scripts/test.mjs cpp js -- arguments for the runner
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildPage } from "./demo.mjs";
import { cmakeBuild } from "./lib/cmake.mjs";
import { buildDir, root } from "./lib/paths.mjs";
import { main, Problem } from "./lib/problem.mjs";
import { runVisibly } from "./lib/run.mjs";
import { runStages, Skipped } from "./lib/stages.mjs";
import { tally, tallyOfCatch2, tallyOfNodeTest, tallyOfVitest } from "./lib/tally.mjs";
import { lintStages, typeStages } from "./lint.mjs";
import { pack } from "./pack.mjs";
import { setUp } from "./setup.mjs";
import { ensureChromium } from "./tools/chromium.mjs";

const groups = {
  lint: () => lintStages(),
  scripts: () => [{ name: "build scripts (node --test)", run: testScripts }],
  build: () => [{ name: "build, pack and install", run: () => pack().then(() => tally(1)) }],
  types: () => typeStages(),
  cpp: () =>
    [
      ["native", "C++ on this machine"],
      ["native-asan", "C++ with address and undefined-behaviour sanitizers"],
      ["native-emulated", "C++ on xsimd::emulated<128>"],
      ["wasm-simd", "C++ as WebAssembly in Node, baseline SIMD"],
      ["wasm-relaxed", "C++ as WebAssembly in Node, relaxed SIMD"],
    ].map(([preset, title]) => ({ name: `${title} (${preset})`, run: () => testCpp(preset) })),
  js: () => [{ name: "TypeScript API in Node, on the installed tarball (vitest)", run: () => testVitest("node") }],
  package: () => [{ name: "the package in other projects (vitest)", run: () => testVitest("package") }],
  browser: () => [{ name: "page and package in Chromium (vitest)", run: testBrowser }],
  onnx: () => [{ name: "ONNX's own tests", run: testOnnx }],
};
/** What npm test runs; the ONNX suite needs a folder and has a command of its own. */
const all = ["lint", "scripts", "build", "types", "cpp", "js", "package", "browser"];

const split = process.argv.indexOf("--");
const words = process.argv.slice(2, split < 0 ? undefined : split);
// npm passes what follows its own "--" without it, so whatever is not a stage is for the runner.
const names = words.filter((word) => word in groups);
const runnerArguments = [...words.filter((word) => !(word in groups)), ...(split < 0 ? [] : process.argv.slice(split + 1))];

await main(async () => {
  await setUp();
  // The runner of ONNX's cases has totals of its own, in which operators that are not offered count as skipped on purpose.
  if (names.length === 1 && names[0] === "onnx") return (await runOnnx()).code;
  return runStages((names.length > 0 ? names : all).flatMap((name) => groups[name]()));
});

async function testScripts() {
  const folder = join(root, "tests/build-scripts");
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".test.mjs"))
    .map((file) => join(folder, file));
  const { code, output } = await runVisibly(process.execPath, ["--test", "--test-reporter=spec", ...files], { capture: true });
  return checked(code, tallyOfNodeTest(output));
}

/** One Catch2 program per preset; natively or in Node. */
async function testCpp(preset) {
  const { generator } = await setUp();
  const folder = await cmakeBuild(preset, "attn_tests", generator);
  const isWasm = preset.startsWith("wasm");
  const program = join(folder, isWasm ? "attn_tests.cjs" : "attn_tests");
  const command = isWasm ? [process.execPath, ...relaxedSimdFlag(), program] : [program];
  const { code, output } = await runVisibly(command[0], [...command.slice(1), ...runnerArguments], { capture: true });
  return checked(code, tallyOfCatch2(output));
}

/** Node 20 has relaxed SIMD behind a flag, newer ones have it by default and may not know the flag. */
function relaxedSimdFlag() {
  return Number(process.versions.node.split(".")[0]) < 22 ? ["--experimental-wasm-relaxed-simd"] : [];
}

async function testVitest(project, env = {}) {
  const { tarball } = await pack();
  const report = join(buildDir, "reports", `${project}.json`);
  mkdirSync(join(buildDir, "reports"), { recursive: true });
  rmSync(report, { force: true });
  const { code } = await runVisibly(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--config",
      join(root, "tests/js/vitest.config.ts"),
      "--project",
      project,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...runnerArguments,
    ],
    { cwd: root, env: { ATTENTION_TARBALL: tarball, ...env } },
  );
  if (!existsSync(report)) throw new Problem(`vitest ended without a report (exit code ${code}).`);
  return checked(code, tallyOfVitest(JSON.parse(readFileSync(report, "utf8"))));
}

async function testBrowser() {
  const chromium = await ensureChromium();
  if (chromium === undefined) {
    throw new Skipped("there is no Chromium: put one on PATH, name it in CHROMIUM, or run as root on Debian.");
  }
  await pack();
  await buildPage();
  return testVitest("browser", { CHROMIUM: chromium });
}

/** ONNX's cases as one stage among others; there the operators that are not offered are not mentioned. */
async function testOnnx() {
  const { code, output } = await runOnnx();
  const [, passed, failed] = /^(\d+) passed, (\d+) failed, \d+ skipped$/m.exec(output) ?? [];
  if (passed === undefined) return checked(code, tally());
  if (code === 0 && passed === "0") throw new Skipped("no folder with ONNX's test data was given (ATTENTION_ONNX_DATA).");
  return checked(code, tally(Number(passed), Number(failed)));
}

/** npm run test:onnx -- FOLDER */
async function runOnnx() {
  await pack();
  return runVisibly(process.execPath, [join(root, "tests/onnx/run.mjs"), ...runnerArguments], { capture: true });
}

/** A runner that fails without a failed test, or that ran nothing, has failed. */
function checked(code, counts) {
  const silent = code !== 0 && counts.failed === 0;
  const empty = counts.passed + counts.failed + counts.skipped === 0;
  if (silent || empty) console.log(`The runner ended with exit code ${code} after ${counts.passed} passed tests.`);
  return silent || empty ? { ...counts, failed: 1 } : counts;
}
