/** Writes README's table and chart from tests/bench/results, so that they can be made again without measuring again. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../../build-scripts/lib/paths.mjs";
import { Problem } from "../../../build-scripts/lib/problem.mjs";
import { barChart } from "./chart.mjs";
import { crossovers, limitFor, milliseconds } from "./report.mjs";
import { describe } from "./workload.mjs";

const results = fileURLToPath(new URL("../results/", import.meta.url));
const kMarkers = /(<!-- bench:begin[^>]*-->\n)[\s\S]*?(<!-- bench:end -->)/;
const kMain = ["prefill", "decode", "layer"];

export function writeReadme() {
  const runs = ["node", "chromium"].map((name) => ({ name, ...read(name) })).filter(({ measured }) => measured);
  if (runs.length === 0) throw new Problem("There are no results yet: run npm run bench without --quick and --only first.");
  for (const run of runs) writeFileSync(join(results, `${run.name}.svg`), chartOf(run));
  const path = join(root, "README.md");
  const text = readFileSync(path, "utf8");
  if (!kMarkers.test(text)) throw new Problem("README.md has no bench:begin and bench:end markers.");
  writeFileSync(
    path,
    text.replace(kMarkers, (_, begin, end) => `${begin}${runs.map(section).join("\n")}${explanation(runs[0])}${end}`),
  );
}

function read(name) {
  const file = join(results, `${name}.json`);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

const mainOf = ({ measured }) => measured.filter(({ workload }) => kMain.includes(workload.group) && workload.only === "all");

function section(run) {
  const { machine, measured } = run;
  const rows = mainOf(run).map((it) => row(it, hasNative(run)));
  const head = [
    "",
    "baseline",
    "relaxed",
    "2 threads",
    "of the SIMD limit",
    "plain JS",
    ...(hasNative(run) ? ["native"] : []),
    "best peer",
  ];
  const lines = [head, head.map((_, i) => (i === 0 ? "---" : "--:")), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `### ${machine.runtime.replace(/ \(.*/, "")}, ${machine.cpu}, ${machine.cores} cores

![Rates of attention-wasm and others in ${machine.runtime.replace(/ .*/, "")}](tests/bench/results/${run.name}.svg)

${lines.join("\n")}

${smallest(measured)}
`;
}

const hasNative = ({ measured }) => measured.some(({ results: list }) => list.some((it) => it.isNative && it.minMs));

function row(it, withNative) {
  const find = (id) => it.results.find((result) => result.id === id && result.minMs);
  const [simd, relaxed, threads, plain, native] = ["attention-wasm simd", "attention-wasm relaxed", "attention-wasm relaxed, 2 threads", "plain JavaScript", "native"].map(find); // biome-ignore format: one list
  const time = (result) => (result ? milliseconds(result.minMs) : "-");
  const share = (result) => (result ? (result.rate / limitFor(result, it)?.rate).toFixed(2) : "-");
  // Like beside like: what uses relaxed SIMD stands beside our relaxed build.
  const beside = (result) => {
    const ours = result?.id.includes("relaxed") ? relaxed : simd;
    return result && ours ? `${time(result)} (${(result.minMs / ours.minMs).toFixed(result.minMs > 10 * ours.minMs ? 0 : 2)} ×)` : "-";
  };
  const peer = bestPeer(it);
  return [
    `${it.workload.name}: ${describe(it.workload)}`,
    time(simd),
    time(relaxed),
    time(threads),
    `${share(simd)}, ${share(relaxed)}`,
    beside(plain),
    ...(withNative ? [beside(native)] : []),
    peer ? `${beside(peer)} ${peer.id}` : "-",
  ];
}

/** The fastest of the others on one thread, without native code. */
function bestPeer({ results: list }) {
  return list.filter((it) => it.isPeer && it.minMs && it.threads === 1).sort((a, b) => a.minMs - b.minMs)[0];
}

function smallest(measured) {
  const found = crossovers(measured).map(({ headDim, smallest: n }) =>
    n === undefined ? `at no size tried with head_dim ${headDim}` : `from ${n} × ${n} on with head_dim ${headDim}`,
  );
  const call = measured
    .find(({ workload }) => workload.id === "n8")
    ?.results.find(({ id, minMs }) => id === "attention-wasm simd" && minMs);
  return [
    ...(call ? [`A call of 8 × 8, arrays in and out, takes ${milliseconds(call.minMs)}.`] : []),
    ...(found.length > 0 ? [`One head is faster than plain JavaScript ${found.join(", ")}.`] : []),
  ].join(" ");
}

function explanation({ machine }) {
  return `
Best times; in brackets how many times as long as our build of the same kind, baseline or relaxed, on one thread (below 1: faster than ours). The SIMD limit is what multiply-adds between
registers give in the same run (decoding: what a plain SIMD read of the same bytes gives), for the baseline and for the relaxed build. "native" is
the same source for this machine's own instructions. Inputs lie in the library's own tensors, outputs are read back; each result was compared with
float64 before its time was taken. Emscripten ${machine.emscripten}${machine.flags ? `, \`${machine.flags}\` for the relaxed builds in Node` : ""}${peersOf(machine)}.
All figures: [tests/bench/results](tests/bench/results). Again: \`npm run bench -- --peers --readme\`, in Chromium with \`--browser\`.
`;
}

const peersOf = ({ peers }) => (peers ? `; ${Object.entries(peers).map(([name, version]) => `${name} ${version}`).join(", ")}` : ""); // biome-ignore format: one line

function chartOf(run) {
  const ids = ["attention-wasm relaxed", "attention-wasm simd", "plain JavaScript"];
  const rate = (it, id) => it.results.find((result) => result.id === id && result.rate)?.rate;
  return barChart({
    title: `Attention on one thread, ${run.machine.runtime.replace(/ \(.*/, "")}, ${run.machine.cpu}`,
    unit: "GFLOP/s (decoding: GB/s)",
    series: ["ours, relaxed SIMD", "ours, baseline", "best peer", "plain JavaScript"],
    groups: mainOf(run).map((it) => ({
      name: `${it.workload.name}`,
      values: [rate(it, ids[0]), rate(it, ids[1]), bestPeer(it)?.rate, rate(it, ids[2])],
    })),
  });
}
