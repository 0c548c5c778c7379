/**
 * Emscripten, from the first of these that is there:
 *   1. emcc on PATH, new enough (emsdk, Homebrew, a distribution);
 *   2. the distribution's own package, new enough, installed by apt when root;
 *   3. on Debian: Debian 13's packages unpacked into the tool folder, with clang from the machine's own release;
 *   4. otherwise one sentence.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Problem } from "../lib/problem.mjs";
import { isNetworkFailure, run, which } from "../lib/run.mjs";
import { step } from "../lib/steps.mjs";
import { isAtLeast } from "../lib/version.mjs";
import { versions } from "../lib/versions.mjs";
import { aptInstall, canUnpackDebian, DebianRelease, distribution, isRoot } from "./debian.mjs";
import { ensureFolder } from "./folder.mjs";

const llvm = `/usr/lib/llvm-${versions.llvmMajor}`;
const name = `emscripten-${versions.emscriptenMinimum}-${versions.debianDonor}`;

/** @returns {Promise<{ root: string, llvmBin?: string, version: string }>} root: the folder that holds emcc */
export async function ensureEmscripten() {
  return fromPath() ?? (await fromDistribution()) ?? (await fromDebianPackages());
}

function fromPath() {
  const emcc = which("emcc");
  if (emcc === undefined) return undefined;
  const root = dirname(realpathSync(emcc));
  const version = versionIn(root);
  return isAtLeast(version, versions.emscriptenMinimum) ? { root, version } : undefined;
}

/** The version file beside emcc: reading it takes no time, starting emcc takes half a second. */
function versionIn(root) {
  try {
    return readFileSync(join(root, "emscripten-version.txt"), "utf8").replaceAll('"', "").trim();
  } catch {
    return "";
  }
}

async function fromDistribution() {
  if (!isRoot() || which("apt-cache") === undefined) return undefined;
  // Debian 13 itself goes on to unpacking: the same packages, but nothing on the machine changes.
  if (canUnpackDebian() && ["bookworm", versions.debianDonor].includes(distribution().codename)) return undefined;
  let policy = "";
  try {
    policy = execFileSync("apt-cache", ["policy", "emscripten"], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
  } catch {
    return undefined;
  }
  if (!isAtLeast(/Candidate:\s*(\S+)/.exec(policy)?.[1], versions.emscriptenMinimum)) return undefined;
  await step("installing Emscripten with apt-get", () => aptInstall(["emscripten"]));
  return fromPath();
}

async function fromDebianPackages() {
  if (!canUnpackDebian()) {
    throw new Problem(
      `Emscripten ${versions.emscriptenMinimum} or newer is needed and not on PATH: install it with emsdk ` +
        '(emscripten.org, "Download and install"), activate it in this shell and run the command again.',
    );
  }
  await ensurePython();
  const folder = await ensureFolder(name, ["3", JSON.stringify(versions), distribution().codename].join(" "), build);
  return {
    root: join(folder, "usr/share/emscripten"),
    llvmBin: join(folder, "llvm-bin"),
    version: versions.emscriptenMinimum,
  };
}

/** emcc is written in Python. */
async function ensurePython() {
  if (which("python3") !== undefined) return;
  if (!isRoot()) throw new Problem("Python 3 is needed by Emscripten: install it with 'sudo apt-get install python3'.");
  await step("installing Python 3 with apt-get", () => aptInstall(["python3"]));
}

async function build({ partial, final, work }) {
  const own = new DebianRelease(distribution().codename, work);
  const donor = own.release === versions.debianDonor ? own : new DebianRelease(versions.debianDonor, work);

  await step("reading Debian's package lists", async () => {
    await own.update();
    if (donor !== own) await donor.update();
  });
  await step("fetching Emscripten 3.1.69 (230 MB, Debian 13 packages)", () =>
    donor.unpack(["emscripten", "binaryen", "libc6", "libstdc++6", "libgcc-s1"], partial),
  );
  await step(`fetching clang ${versions.llvmMajor} (80 MB, packages of this Debian)`, async () => {
    const m = versions.llvmMajor;
    const packages = [
      `clang-${m}`,
      `libclang-common-${m}-dev`,
      `libclang-cpp${m}`,
      `libllvm${m}`,
      `lld-${m}`,
      `llvm-${m}`,
      `clang-format-${m}`,
      `clang-tidy-${m}`,
    ];
    const missing = await own.missingDependencies(packages);
    // In a folder of its own: Debian 13's C library must not be mixed with libraries of this release.
    await own.unpack([...packages, ...missing], join(partial, "llvm"));
  });
  await step("preparing Emscripten", async () => {
    wrapBinaryen(partial, final);
    wrapLlvm(partial, final);
    writeFileSync(
      join(partial, "usr/share/emscripten/.emscripten"),
      [
        "# Emscripten reads this file because it lies beside emcc; no environment variable is needed.",
        `LLVM_ROOT = '${final}/llvm-bin'`,
        `BINARYEN_ROOT = '${final}/binaryen'`,
        `NODE_JS = '${process.execPath}'`,
        "# All system libraries come prebuilt in the package; building one would fail on the package's missing sources.",
        "FROZEN_CACHE = True",
        "",
      ].join("\n"),
    );
    await run(
      "npm",
      [
        "install",
        "--prefix",
        join(partial, "usr/share/emscripten"),
        "--no-save",
        "--no-package-lock",
        "--ignore-scripts",
        `acorn@${versions.acorn}`,
      ],
      {
        sorry: (output) =>
          isNetworkFailure(output)
            ? "npm cannot reach its registry: check the network or the proxy and run the command again."
            : "npm could not install acorn for Emscripten: see the lines above.",
      },
    );
  });
}

/** Binaryen is linked against Debian 13's C library, so each tool is started by that library's own loader. */
function wrapBinaryen(partial, final) {
  const loader = findFile(partial, /^ld-linux.*\.so\.\d+$/, ["usr/lib64", "usr/lib", "lib64", "lib"]);
  const libraries = dirname(findFile(partial, /^libc\.so\.6$/, ["usr/lib"]));
  mkdirSync(join(partial, "binaryen/bin"), { recursive: true });
  for (const tool of readdirSync(join(partial, "usr/bin")).filter((file) => file.startsWith("wasm"))) {
    writeScript(
      join(partial, "binaryen/bin", tool),
      `exec '${final}/${loader}' --library-path '${final}/${libraries}' '${final}/usr/bin/${tool}' "$@"`,
    );
  }
}

/** clang's libraries are not where the system would look for them. */
function wrapLlvm(partial, final) {
  const libraries = dirname(findFile(join(partial, "llvm"), /^libLLVM.*\.so\.\d.*$/, ["usr/lib"]));
  mkdirSync(join(partial, "llvm-bin"), { recursive: true });
  for (const tool of readdirSync(join(partial, "llvm", llvm, "bin"))) {
    writeScript(
      join(partial, "llvm-bin", tool),
      `LD_LIBRARY_PATH='${final}/llvm/${libraries}'\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec '${final}/llvm${llvm}/bin/${tool}' "$@"`,
    );
  }
}

function writeScript(file, line) {
  writeFileSync(file, `#!/bin/sh\n${line}\n`);
  chmodSync(file, 0o755);
}

/** Path, relative to base, of the first file whose name fits, looked for in folders and one level below them. */
function findFile(base, pattern, folders) {
  for (const folder of folders) {
    const here = join(base, folder);
    if (!existsSync(here)) continue;
    const entries = readdirSync(here, { withFileTypes: true });
    const below = entries
      .filter((entry) => entry.isDirectory() && entry.name.includes("linux-gnu"))
      .map((entry) => join(folder, entry.name));
    for (const candidate of [folder, ...below]) {
      const found = readdirSync(join(base, candidate)).find((file) => pattern.test(basename(file)));
      if (found) return join(candidate, found);
    }
  }
  throw new Problem(`A library is missing in the unpacked Debian packages (${pattern}): please report this.`);
}
