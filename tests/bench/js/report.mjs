/** The tables on the terminal, and the ratios that the issue of the benchmarks asks for. They decide nothing: machines differ and are busy. */
import { describe } from "./workload.mjs";

const number = (x, digits = 1) => (x === undefined || !Number.isFinite(x) ? "-" : x.toFixed(x >= 1000 ? 0 : digits));

export const milliseconds = (ms) => (ms < 0.1 ? `${number(ms * 1000, 2)} µs` : `${number(ms, ms < 10 ? 2 : 1)} ms`);

/** The limit that a contestant could reach: of its own instructions; a decoding step is limited by reading. */
export function limitFor(result, { workload, results }) {
  const wanted = result.variant === "relaxed" && workload.group !== "decode" ? "limit: relaxed madd" : "limit: mul + add";
  return results.find(({ id, rate }) => id === wanted && rate !== undefined);
}

export function workloadTable({ workload, results }) {
  const unit = workload.group === "decode" ? "GB/s" : "GFLOP/s";
  const plain = results.find(({ id, minMs }) => id === "plain JavaScript" && minMs);
  const best = results.find(({ id, minMs }) => id === "attention-wasm simd" && minMs);
  const head = ["", "best", "median", unit, "of limit", "× plain JS", "× ours (simd)", "error", "runs"];
  const rows = results.map((result) => {
    if (result.error) return [result.id, result.error, "", "", "", "", "", "", ""];
    const limit = result.isOurs && limitFor(result, { workload, results });
    return [
      result.id,
      result.isLimit ? "" : `${result.share < 1 ? "~" : ""}${milliseconds(result.minMs)}`,
      result.isLimit ? "" : milliseconds(result.medianMs),
      number(result.rate),
      limit && result.threads === 1 ? number(result.rate / limit.rate, 2) : "",
      plain && !result.isLimit ? number(plain.minMs / result.minMs) : "",
      best && !result.isLimit ? number(best.minMs / result.minMs, 2) : "",
      result.check === undefined ? "" : result.check.toExponential(1),
      String(result.runs),
    ];
  });
  return `\n${workload.id} ${workload.name}: ${describe(workload)}\n${columns(head, rows)}`;
}

/** The ratios of workloads.json, the shares of the limits and the smallest size that beats plain JavaScript, with the goals beside them. */
export function ratioReport(measured, ratios, pairs) {
  const lines = [
    ...shareLines(measured),
    ...threadLines(measured),
    ...ratios.flatMap((ratio) => ratioLines(measured, ratio, pairs)),
    ...crossover(measured),
  ];
  return lines.length === 0 ? "" : `\nRatios (printed, not judged)\n${columns(["", "measured", "goal", ""], lines)}`;
}

function shareLines(measured) {
  return measured.flatMap((it) =>
    Object.entries(it.workload.goals ?? {}).flatMap(([variant, goal]) => {
      const result = it.results.find(({ id, rate }) => id === `attention-wasm ${variant}` && rate);
      const limit = result && limitFor(result, it);
      if (!limit) return [];
      return [line(`${it.workload.id} ${variant}: share of the limit`, result.rate / limit.rate, goal, true)];
    }),
  );
}

function threadLines(measured) {
  return measured
    .filter(({ workload }) => ["W2", "W3", "W8"].includes(workload.id))
    .flatMap(({ workload, results }) =>
      ["simd", "relaxed"].flatMap((variant) => {
        const [one, two] = [1, 2].map((n) =>
          results.find(({ isOurs, threads, variant: v, minMs }) => isOurs && threads === n && v === variant && minMs),
        );
        return one && two ? [line(`${workload.id} ${variant}: two threads beside one`, one.minMs / two.minMs, 1.9, true)] : [];
      }),
    );
}

/** From measurements in turns where there are any, else from those of the two workloads. */
function ratioLines(measured, { name, of, to, perOperation, atMost }, pairs) {
  const inTurns = pairs.filter((pair) => pair.of === of && pair.to === to);
  if (inTurns.length > 0) return inTurns.map(({ variant, ratio }) => line(`${name} (${variant})`, ratio, atMost, false));
  const [a, b] = [of, to].map((id) => measured.find(({ workload }) => workload.id === id));
  return ["simd", "relaxed"].flatMap((variant) => {
    const [x, y] = [a, b].map((it) => it?.results.find(({ id, minMs }) => id === `attention-wasm ${variant}` && minMs));
    if (!x || !y) return [];
    return [line(`${name} (${variant})`, perOperation ? y.rate / x.rate : x.minMs / y.minMs, atMost, false)];
  });
}

/** Per width, the smallest square call from which on the package is faster than plain JavaScript. */
export function crossovers(measured) {
  const small = measured.filter(({ workload }) => workload.group === "small");
  return [...new Set(small.map(({ workload }) => workload.headDim))].map((headDim) => {
    const sizes = small.filter(({ workload }) => workload.headDim === headDim).sort((a, b) => a.workload.seqLenQ - b.workload.seqLenQ);
    let smallest;
    for (const { workload, results } of sizes) {
      const [ours, plain] = ["attention-wasm simd", "plain JavaScript"].map((id) => results.find((it) => it.id === id)?.minMs);
      if (!(ours < plain)) smallest = undefined;
      else smallest ??= workload.seqLenQ;
    }
    return { headDim, smallest };
  });
}

function crossover(measured) {
  return crossovers(measured).map(({ headDim, smallest }) => [
    `one head, head_dim ${headDim}: faster than plain JavaScript from`,
    smallest === undefined ? "no size tried" : `${smallest} × ${smallest}`,
    "",
    "",
  ]);
}

const line = (name, value, goal, atLeast) => [
  name,
  number(value, 2),
  `${atLeast ? "≥" : "≤"} ${goal}`,
  (atLeast ? value >= goal : value <= goal) ? "" : "missed",
];

function columns(head, rows) {
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => (i > 0 && row.slice(2).every((x) => x === "") ? 0 : row[i].length))),
  );
  const render = (row) =>
    row
      .map((text, i) => (i === 0 || row === head ? text.padEnd(widths[i]) : text.padStart(widths[i])))
      .join("  ")
      .trimEnd();
  return [head, ...rows].map(render).join("\n");
}
