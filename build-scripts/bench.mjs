/**
 * npm run bench: the C++ benchmarks for this machine (tests/bench/cpp) and those of the installed package in Node (tests/bench/js).
 * With names, only the files whose names contain one of them; flags ("--quick", see tests/bench/js/options.mjs) are handed on to those in Node.
 * Each verifies its result before it takes the time.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { cmakeBuild } from "./lib/cmake.mjs";
import { root } from "./lib/paths.mjs";
import { main, Problem } from "./lib/problem.mjs";
import { runVisibly } from "./lib/run.mjs";
import { pack } from "./pack.mjs";

const flags = process.argv.slice(2).filter((word) => word.startsWith("--"));
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.includes(word));

function filesIn(folder, ending) {
  const path = join(root, folder);
  return existsSync(path) ? readdirSync(path).filter((name) => name.endsWith(ending) && isWanted(name)) : [];
}

await main(async () => {
  const cpp = filesIn("tests/bench/cpp", ".cpp");
  const js = filesIn("tests/bench/js", ".bench.mjs");
  if (cpp.length + js.length === 0)
    throw new Problem(`There is no benchmark ${wanted.length > 0 ? `named ${wanted.join(", ")} ` : ""}in tests/bench.`);
  const { generator } = await pack();
  if (cpp.length > 0) {
    const folder = await cmakeBuild("native-bench", "attn_bench", generator);
    const { code } = await runVisibly(join(folder, "attn_bench"), wanted);
    if (code !== 0) return code;
  }
  for (const name of js) {
    const { code } = await runVisibly(process.execPath, [join(root, "tests/bench/js", name), ...flags]);
    if (code !== 0) return code;
  }
  return 0;
});
