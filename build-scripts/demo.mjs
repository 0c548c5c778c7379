/** npm run demo: sets up, builds the package and the page, serves it and prints its address. Arguments go to Vite's server. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildDir, root } from "./lib/paths.mjs";
import { main } from "./lib/problem.mjs";
import { run, runVisibly } from "./lib/run.mjs";
import { hashOf, stampMatches, writeStamp } from "./lib/stamp.mjs";
import { step } from "./lib/steps.mjs";
import { pack } from "./pack.mjs";

const vite = join(root, "node_modules/vite/bin/vite.js");
const config = ["--config", join(root, "web/vite.config.ts")];

/** Builds the page into build/web, from the packed and installed package. */
export async function buildPage() {
  const stamp = join(buildDir, "web.stamp");
  const wanted = hashOf(root, ["web", "build/installed/.stamp", "package-lock.json"]);
  if (stampMatches(stamp, wanted)) return;
  await step("building the page", () =>
    run(process.execPath, [vite, "build", ...config, join(root, "web")], {
      cwd: root,
      sorry: "The page does not build: see the lines above.",
    }),
  );
  writeStamp(stamp, wanted);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    await pack();
    await buildPage();
    const { code } = await runVisibly(process.execPath, [vite, "preview", ...config, join(root, "web"), ...process.argv.slice(2)]);
    return code;
  });
}
