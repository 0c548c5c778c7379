/**
 * npm run lint: layout and lint of C++ (clang-format) and of everything in JavaScript (biome), and the types of tests and page.
 * npm run format: the same, mending what can be mended.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./lib/paths.mjs";
import { main, Problem } from "./lib/problem.mjs";
import { run, which } from "./lib/run.mjs";
import { runStages, Skipped } from "./lib/stages.mjs";
import { tally } from "./lib/tally.mjs";
import { versions } from "./lib/versions.mjs";
import { pack } from "./pack.mjs";
import { setUp } from "./setup.mjs";

/** The types of tests and page; they import the package by its name, so it has to be packed before. */
export function typeStages() {
  return [{ name: "types of tests and page (tsc)", run: types }];
}

export function lintStages({ write = false } = {}) {
  return [
    { name: "C++ layout (clang-format)", run: () => clangFormat(write) },
    { name: "JavaScript and TypeScript (biome)", run: () => biome(write) },
  ];
}

async function clangFormat(write) {
  const { emscripten } = await setUp();
  const tool = findClangFormat(emscripten.llvmBin);
  if (tool === undefined) throw new Skipped(`clang-format ${versions.llvmMajor} is not on PATH (others lay out code differently).`);
  const files = ["src", "tests"].flatMap((folder) => cppFiles(join(root, folder)));
  await run(tool, [...(write ? ["-i"] : ["--dry-run", "--Werror"]), ...files], {
    cwd: root,
    sorry: "The C++ is not laid out as .clang-format says: run 'npm run format'.",
  });
  return tally(1);
}

function findClangFormat(llvmBin) {
  const candidates = [llvmBin && join(llvmBin, "clang-format"), which(`clang-format-${versions.llvmMajor}`), which("clang-format")];
  return candidates
    .filter(Boolean)
    .find((path) => new RegExp(`version ${versions.llvmMajor}\\.`).test(execFileSync(path, ["--version"], { encoding: "utf8" })));
}

function cppFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : cppFiles(path);
    return /\.(cpp|hpp|h)$/.test(entry.name) ? [path] : [];
  });
}

async function biome(write) {
  const tool = join(root, "node_modules/.bin/biome");
  await run(tool, ["check", "--error-on-warnings", "--max-diagnostics=50", "--colors=off", ...(write ? ["--write"] : [])], {
    cwd: root,
    sorry: "biome found something: run 'npm run format', and mend by hand what is left.",
    show: (output) => output.split("\n").slice(0, 200).join("\n"),
  });
  return tally(1);
}

async function types() {
  const projects = ["tests/tsconfig.json", "web/tsconfig.json"].filter((file) => existsSync(join(root, file)));
  for (const project of projects) {
    await run(join(root, "node_modules/.bin/tsc"), ["--noEmit", "-p", join(root, project)], {
      cwd: root,
      sorry: `${project} has type errors: they stand above.`,
      show: (output) => output.split("\n").slice(0, 60).join("\n"),
    });
  }
  return tally(projects.length);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const unknown = process.argv.slice(2).filter((word) => word !== "--write");
    if (unknown.length > 0) throw new Problem(`'${unknown[0]}' is not known: say --write or nothing.`);
    await pack();
    return runStages([...lintStages({ write: process.argv.includes("--write") }), ...typeStages()]);
  });
}
