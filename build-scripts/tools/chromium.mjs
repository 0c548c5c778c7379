/** A Chromium for the browser tests: $CHROMIUM, one on PATH, or Debian's package when root. */
import { existsSync } from "node:fs";
import { Problem } from "../lib/problem.mjs";
import { which } from "../lib/run.mjs";
import { step } from "../lib/steps.mjs";
import { aptInstall, isRoot } from "./debian.mjs";

/** @returns {Promise<string | undefined>} its path; undefined when there is none and none can be installed */
export async function ensureChromium() {
  const chosen = process.env.CHROMIUM;
  if (chosen) {
    if (existsSync(chosen)) return chosen;
    throw new Problem(`CHROMIUM is set to ${chosen}, which is not there: correct it or unset it.`);
  }
  return findChromium() ?? (await installChromium());
}

export function findChromium() {
  for (const name of ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]) {
    const path = which(name);
    if (path) return path;
  }
  return undefined;
}

async function installChromium() {
  if (!isRoot() || which("apt-get") === undefined) return undefined;
  try {
    // fonts: without any, a page's text has no width, and layout tests would test nothing
    await step("installing Chromium with apt-get", () => aptInstall(["chromium", "fonts-dejavu-core"]));
  } catch (error) {
    // Everything else can still be tested; the caller says that browser tests are skipped.
    process.stderr.write(`${error.detail}\n${error.message}\n`);
    return undefined;
  }
  return findChromium();
}
