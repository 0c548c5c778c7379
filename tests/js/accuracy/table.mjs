/**
 * Prints the table of errors and writes it to tests/ACCURACY.md. By hand: npm run accuracy, which builds the package first.
 */
import { writeFileSync } from "node:fs";
import { allowRelaxedSimd, loadBinary, shippedBinaries } from "../../onnx/instances.mjs";
import { cases, computePlainly, computeWith, errors, exponentialErrors, makeInputs } from "./measure.mjs";

allowRelaxedSimd();
// Threads change no bit, so the builds with them need no column.
const names = shippedBinaries().filter((name) => !name.endsWith("-threads"));
const instances = await Promise.all(names.map(loadBinary));

const unit = (error) => (error * 1e7).toFixed(2);
const row = (cells) => `| ${cells.join(" | ")} |`;
const table = [
  row(["queries", "keys", "scores up to", "plain float32", ...names]),
  row(["---", "--:", "--:", "--:", ...names.map(() => "--:")]),
  ...cases.map((which) => {
    const inputs = makeInputs(which);
    const exact = computePlainly(which, inputs, (x) => x);
    const results = [computePlainly(which, inputs, Math.fround), ...instances.map((attn) => computeWith(attn, which, inputs))];
    const cells = results.map((result) => errors(result, exact)).map(({ largest, mean }) => `${unit(largest)} (${unit(mean)})`);
    return row([which.kind, which.keys, `±${which.scoreSize}`, ...cells]);
  }),
];
const exponential = [
  row(["exponential", ...names]),
  row(["---", ...names.map(() => "--:")]),
  ...["relative", "absolute"].map((kind) =>
    row([
      kind === "relative" ? "largest relative error, 0 to -87" : "largest absolute error, -87 to -100",
      ...instances.map((attn) => exponentialErrors(attn)[kind].toExponential(2)),
    ]),
  ),
];
const text = `# Accuracy

Distance from the same computation in float64, in units of 1e-7: the largest over all elements, and the mean in brackets. Values are uniform in -1..1, heads are 64
wide. "Plain float32" are loops as one would write them, every operation rounded to float32; the package must not be off by more than twice as much
(a test holds it to that). Written by \`npm run accuracy\`.

${table.join("\n")}

The exponential, seen through the weights of two keys with scores 0 and -x, for x from 0 to 100 in steps of 0.001:

${exponential.join("\n")}
`;
console.log(text);
writeFileSync(new URL("../../ACCURACY.md", import.meta.url), text);
for (const attn of instances) attn.dispose();
