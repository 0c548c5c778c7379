/**
 * Packs the package as npm would publish it and installs it below build/installed: what users get is what is tested.
 * A link in node_modules lets tests and the page import it by its published name.
 * By hand: node build-scripts/pack.mjs
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { emptyFolder } from "./lib/files.mjs";
import { withLock } from "./lib/lock.mjs";
import { buildDir, root } from "./lib/paths.mjs";
import { main } from "./lib/problem.mjs";
import { run } from "./lib/run.mjs";
import { hashOf, stampMatches, writeStamp } from "./lib/stamp.mjs";
import { step } from "./lib/steps.mjs";

const packDir = join(buildDir, "pack");
export const installDir = join(buildDir, "installed");
const installed = join(installDir, "node_modules/attention-wasm");

/** Builds, packs and installs; gives the tarball's path. */
export async function pack(options) {
  const tools = await build(options);
  const stamp = join(installDir, ".stamp");
  const wanted = hashOf(root, ["dist", "package.json", "README.md", "LICENSE", "CHANGELOG.md"]);
  await withLock(join(buildDir, "pack.lock"), async () => {
    if (stampMatches(stamp, wanted)) return;
    await step("packing and installing the package", async () => {
      emptyFolder(packDir);
      emptyFolder(installDir);
      await run("npm", ["pack", "--pack-destination", packDir, "--loglevel=warn"], { cwd: root });
      writeFileSync(join(installDir, "package.json"), '{ "private": true }\n');
      // Offline on purpose: the package has no dependencies, and this would show one.
      await run("npm", ["install", "--no-save", "--no-package-lock", "--offline", "--loglevel=warn", tarball()], { cwd: installDir });
      writeStamp(stamp, wanted);
    });
  });
  link(join(root, "node_modules/attention-wasm"));
  return { ...tools, tarball: tarball() };
}

function tarball() {
  return join(
    packDir,
    readdirSync(packDir).find((file) => file.endsWith(".tgz")),
  );
}

function link(path) {
  const target = relative(dirname(path), installed);
  try {
    if (lstatSync(path).isSymbolicLink() && readlinkSync(path) === target) return;
  } catch {
    // not there yet
  }
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, process.platform === "win32" ? "junction" : "dir");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => console.log((await pack()).tarball));
}
