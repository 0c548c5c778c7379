/** The npm packages of package-lock.json, in node_modules. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../lib/lock.mjs";
import { buildDir, root } from "../lib/paths.mjs";
import { isNetworkFailure, run } from "../lib/run.mjs";
import { clearStamp, hashOf, stampMatches, writeStamp } from "../lib/stamp.mjs";
import { step } from "../lib/steps.mjs";

export async function ensureNodeModules() {
  // Inside node_modules, so that deleting the folder deletes the stamp.
  const stamp = join(root, "node_modules/.attention-stamp");
  // Some packages are a binary for one platform: another machine on the same checkout needs its own.
  const wanted = () => hashOf(root, ["package.json", "package-lock.json"], `${process.platform} ${process.arch}`);
  if (stampMatches(stamp, wanted())) return;
  await withLock(join(buildDir, "npm.lock"), async () => {
    if (stampMatches(stamp, wanted())) return;
    clearStamp(stamp);
    const command = existsSync(join(root, "package-lock.json")) ? "ci" : "install";
    await step("fetching npm packages", () =>
      run("npm", [command, "--no-audit", "--no-fund", "--loglevel=warn"], {
        cwd: root,
        sorry: (output) =>
          isNetworkFailure(output)
            ? "npm cannot reach its registry: check the network or the proxy and run the command again."
            : `npm ${command} failed: see the lines above, mend it and run the command again.`,
      }),
    );
    writeStamp(stamp, wanted());
  });
}
