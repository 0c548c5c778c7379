/** Installs the peers into the folder where all downloaded tools are, apart from everything that the package is built with. */
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { toolsDir } from "../../../build-scripts/lib/paths.mjs";
import { run } from "../../../build-scripts/lib/run.mjs";
import { stampMatches, writeStamp } from "../../../build-scripts/lib/stamp.mjs";
import { step } from "../../../build-scripts/lib/steps.mjs";

const list = fileURLToPath(new URL("package.json", import.meta.url));

/** @returns {Promise<string>} the folder that holds their node_modules */
export async function ensurePeers() {
  const folder = join(toolsDir, "bench-peers");
  const wanted = readFileSync(list, "utf8");
  const stamp = join(folder, ".stamp");
  if (!stampMatches(stamp, wanted) || !existsSync(join(folder, "node_modules"))) {
    await step("installing the peers", async () => {
      mkdirSync(folder, { recursive: true });
      copyFileSync(list, join(folder, "package.json"));
      await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], {
        cwd: folder,
        sorry: "The peers could not be installed: see the lines above. Without --peers the benchmark needs none of them.",
      });
      writeStamp(stamp, wanted);
    });
  }
  return folder;
}

export function peerVersions(folder) {
  const { dependencies } = JSON.parse(readFileSync(list, "utf8"));
  const version = (name) => JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")).version;
  return Object.fromEntries(Object.keys(dependencies).map((name) => [name, version(name)]));
}
