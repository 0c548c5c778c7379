/** What must be on the machine before anything else: Node, CMake, a C++ compiler, make or ninja. */
import { execFileSync } from "node:child_process";
import { Problem } from "../lib/problem.mjs";
import { which } from "../lib/run.mjs";
import { step } from "../lib/steps.mjs";
import { isAtLeast } from "../lib/version.mjs";
import { aptInstall, isRoot } from "./debian.mjs";

const minimumNode = "20.19"; // of vite and vitest; the published package itself runs on Node 18
const minimumCmake = "3.25"; // of the presets

export function checkNode() {
  if (!isAtLeast(process.version, minimumNode)) {
    throw new Problem(`Node ${minimumNode} or newer is needed to build this project, and this is ${process.version}: install a newer one.`);
  }
}

/** @returns {Promise<{ generator: string }>} the CMake generator to use */
export async function ensureHostTools() {
  const missing = [];
  if (which("cmake") === undefined) missing.push("cmake");
  if (which("c++") === undefined && process.env.CXX === undefined) missing.push("g++");
  if (which("ninja") === undefined && which("make") === undefined) missing.push("make");
  if (missing.length > 0) await install(missing);
  return { generator: which("ninja") ? "Ninja" : "Unix Makefiles" };
}

async function install(packages) {
  const names = packages.join(" ");
  if (which("apt-get") === undefined) {
    throw new Problem(
      `Not on PATH, but needed: ${packages.join(", ")}; install ${packages.length > 1 ? "them" : "it"} and run the command again.`,
    );
  }
  if (!isRoot()) throw new Problem(`Not on PATH, but needed: ${packages.join(", ")}; install with 'sudo apt-get install ${names}'.`);
  await step(`installing ${names} with apt-get`, () => aptInstall(packages));
}

/** Asked only before a build folder is configured: starting cmake at every run would take time. */
export function checkCmakeVersion() {
  const version = execFileSync("cmake", ["--version"], { encoding: "utf8" });
  if (!isAtLeast(version, minimumCmake)) {
    throw new Problem(`CMake ${minimumCmake} or newer is needed, and ${version.split("\n")[0]} is on PATH: install a newer one.`);
  }
}
