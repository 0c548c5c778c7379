/** npm start: sets up, builds, and computes self-attention of a sentence. Arguments go to web/examples/sentence.mjs. */
import { join } from "node:path";
import { build } from "./build.mjs";
import { root } from "./lib/paths.mjs";
import { main } from "./lib/problem.mjs";
import { runVisibly } from "./lib/run.mjs";

await main(async () => {
  await build();
  const { code } = await runVisibly(process.execPath, [join(root, "web/examples/sentence.mjs"), ...process.argv.slice(2)]);
  return code;
});
