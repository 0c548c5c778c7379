/** A bar chart as SVG: one bar a contestant, groups of bars a workload. Its colours have contrast on white and on black. */
import { scaleBand, scaleLinear } from "d3-scale";

const kWidth = 860;
const kBar = 13;
const kMargin = { top: 58, right: 70, bottom: 50, left: 210 };
const kColours = ["#2f6fde", "#1c9d74", "#b8701a", "#8d5bd1", "#c2477b", "#64748b"];

/** @param {{ title: string, unit: string, series: string[], groups: { name: string, values: (number | undefined)[] }[] }} chart */
export function barChart({ title, unit, series, groups }) {
  const height = kMargin.top + kMargin.bottom + groups.length * (series.length * kBar + 14);
  const largest = Math.max(...groups.flatMap(({ values }) => values.filter((value) => value !== undefined)));
  const x = scaleLinear([0, largest], [kMargin.left, kWidth - kMargin.right]).nice();
  const y = scaleBand(groups.map(({ name }) => name), [kMargin.top, height - kMargin.bottom]).paddingInner(0.12); // biome-ignore format: one call
  const inner = scaleBand(series, [0, y.bandwidth()]).paddingInner(0.1);
  const parts = [
    text(12, 22, title, 'font-size="15" font-weight="600"'),
    ...series.map((name, i) => legend(12 + i * ((kWidth - 24) / series.length), 40, name, kColours[i])),
    ...x.ticks(6).map((value) => tick(x(value), value, height)),
    text(kWidth - kMargin.right, height - 8, unit, 'text-anchor="end"'),
    ...groups.flatMap(({ name, values }) => [
      text(kMargin.left - 10, y(name) + y.bandwidth() / 2 + 4, name, 'text-anchor="end"'),
      ...values.flatMap((value, i) => (value === undefined ? [] : bar(x, y(name) + inner(series[i]), inner.bandwidth(), value, i))),
    ]),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${kWidth} ${height}" font-family="system-ui, sans-serif" font-size="12">
<title>${escaped(title)}</title>
<style>text { fill: #24292f } line { stroke: #d0d7de } @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } line { stroke: #444c56 } }</style>
${parts.join("\n")}
</svg>
`;
}

const text = (x, y, content, more = "") => `<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(content)}</text>`;

const legend = (x, y, name, colour) =>
  `<rect x="${round(x)}" y="${y - 10}" width="11" height="11" rx="2" fill="${colour}"/>${text(x + 16, y, name)}`;

const tick = (x, value, height) =>
  `<line x1="${round(x)}" x2="${round(x)}" y1="${kMargin.top - 6}" y2="${height - kMargin.bottom}"/>${text(x, height - kMargin.bottom + 16, String(value), 'text-anchor="middle"')}`;

function bar(x, y, height, value, i) {
  const label = value < 10 ? value.toFixed(1) : value.toFixed(0);
  return [
    `<rect x="${x(0)}" y="${round(y)}" width="${round(x(value) - x(0))}" height="${round(height)}" rx="2" fill="${kColours[i]}"/>`,
    text(x(value) + 5, y + height - 1, label, 'font-size="10.5"'),
  ];
}

const round = (value) => Number(value.toFixed(1));
const escaped = (content) => content.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
