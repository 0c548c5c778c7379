/** npm run bench: verifies, then times the installed package beside plain JavaScript, the SIMD limits, a native build and, if asked, its peers. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildDir } from "../../../build-scripts/lib/paths.mjs";
import { main, Problem } from "../../../build-scripts/lib/problem.mjs";
import { cmakeBuild } from "../../../build-scripts/lib/cmake.mjs";
import { setUp } from "../../../build-scripts/setup.mjs";
import { ensurePeers, peerVersions } from "../peers/install.mjs";
import { contestants } from "./contestants.mjs";
import { plans, runWorkload } from "./contest.mjs";
import { describeMachine, packageFolder } from "./machine.mjs";
import { enterNative } from "./native-program.mjs";
import { nodeStage } from "./node-processes.mjs";
import { readOptions, usage } from "./options.mjs";
import { runPair } from "./pairs.mjs";
import { ratioReport, workloadTable } from "./report.mjs";
import { allWorkloads } from "./workload.mjs";

const folder = fileURLToPath(new URL("../", import.meta.url));

await main(async () => {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) throw new Problem(usage);
  const file = JSON.parse(readFileSync(join(folder, "workloads.json"), "utf8"));
  const workloads = allWorkloads(file).filter(wanted(options));
  if (workloads.length === 0)
    throw new Problem(`No workload is called ${options.only.join(" or ")}; tests/bench/workloads.json lists them.`);

  const tools = await setUp({ browser: options.browser });
  const peersFolder = options.peers ? await ensurePeers() : undefined;
  const program =
    options.native && !options.browser ? join(await cmakeBuild("native-bench", "attn_bench", tools.generator), "attn_bench") : undefined;
  const stage = await makeStage(options, tools, peersFolder);
  const list = contestants({ withPeers: options.peers, withNative: program !== undefined });
  const machine = describeMachine({
    stage,
    emscripten: tools.emscripten.version,
    peers: options.peers ? peerVersions(peersFolder) : undefined,
  });
  console.log(`${machine.cpu}, ${machine.cores} cores; ${machine.runtime} ${machine.flags}; Emscripten ${machine.emscripten}`);

  const measured = [];
  const pairs = [];
  try {
    for (const w of workloads) {
      const plan = options.quick ? plans.quick : plans.full;
      const result = await runWorkload(w, {
        list,
        stage,
        enterNative: () => enterNative(program),
        plan,
        quick: options.quick,
        isBrowser: options.browser,
      });
      measured.push(result);
      console.log(workloadTable(result));
    }
    for (const ratio of file.ratios) pairs.push(...(await runPair(ratio, workloads, { list, stage, quick: options.quick })));
  } finally {
    await stage.close();
  }
  console.log(ratioReport(measured, file.ratios, pairs));
  save(options, { machine, measured, pairs });
  if (options.readme) await (await import("./readme.mjs")).writeReadme();
  // A wrong result is no slow result: it fails.
  const wrong = measured.flatMap(({ workload, results }) =>
    results.filter((it) => it.isOurs && it.error).map((it) => `${workload.id} ${it.id}: ${it.error}`),
  );
  if (wrong.length > 0) throw new Problem(wrong.join("\n"));
});

function wanted({ only, quick }) {
  return (w) => (only ? only.includes(w.id) || only.includes(w.group) : !quick || w.quick);
}

async function makeStage({ browser }, { chromium }, peersFolder) {
  if (!browser) return nodeStage({ packageFolder, peersFolder });
  if (chromium === undefined) throw new Problem("There is no Chromium: put one on PATH or name it in CHROMIUM.");
  const { browserStage } = await import("./browser-tabs.mjs");
  return browserStage({ executablePath: chromium, packageFolder, peersFolder });
}

/** Whole runs go to tests/bench/results, where README's table comes from; parts of runs to build/. */
function save({ quick, only, browser }, result) {
  const results = quick || only ? join(buildDir, "bench") : join(folder, "results");
  mkdirSync(results, { recursive: true });
  const path = join(results, browser ? "chromium.json" : "node.json");
  writeFileSync(path, `${JSON.stringify(result, roundNumbers, 1)}\n`);
}

function roundNumbers(_, value) {
  return typeof value === "number" ? Number(value.toPrecision(5)) : value;
}
