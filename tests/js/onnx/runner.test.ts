/** The runner of ONNX's test cases is itself under test: it must not call right what is wrong, missing or empty. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { decodeTensor, encodeSingleNode, encodeTensor } from "../../onnx/proto.mjs";

const runner = fileURLToPath(new URL("../../onnx/run.mjs", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "attention-onnx-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** ln 3: q · k of 0 and ln 3 give weights 1/4 and 3/4. */
const LN3 = Math.log(3);

/** A checkout with one case of Attention, whose output is [3], and one of LinearAttention. */
function makeCheckout(name: string): { root: string; data: string } {
  const root = join(scratch, name);
  const node = join(root, "onnx/backend/test/data/node");
  const data = join(node, "test_attention_tiny/test_data_set_0");
  mkdirSync(data, { recursive: true });
  const tensor = (name: string, shape: number[], ...values: number[]) =>
    encodeTensor({ name, type: "float32", shape, data: Float32Array.from(values) });
  const model = encodeSingleNode({
    type: "Attention",
    opset: 23,
    attributes: { scale: 1 },
    inputs: [{ name: "Q" }, { name: "K" }, { name: "V" }, { name: "" }],
    outputs: [{ name: "Y" }, { name: "" }, { name: "" }, { name: "scores" }],
  });
  writeFileSync(join(node, "test_attention_tiny/model.onnx"), model);
  writeFileSync(join(data, "input_0.pb"), tensor("Q", [1, 1, 1, 1], 1));
  writeFileSync(join(data, "input_1.pb"), tensor("K", [1, 1, 2, 1], 0, LN3));
  writeFileSync(join(data, "input_2.pb"), tensor("V", [1, 1, 2, 1], 0, 4));
  writeFileSync(join(data, "output_0.pb"), tensor("Y", [1, 1, 1, 1], 3));
  writeFileSync(join(data, "output_1.pb"), tensor("scores", [1, 1, 1, 2], 0, LN3));
  const skipped = join(node, "test_linear_attention_tiny");
  mkdirSync(skipped);
  const linear = encodeSingleNode({ type: "LinearAttention", opset: 27, inputs: [{ name: "query" }], outputs: [{ name: "output" }] });
  writeFileSync(join(skipped, "model.onnx"), linear);
  return { root, data };
}

function run(words: string[], data = ""): { lastLine: string; output: string; code: number | null } {
  const { stdout, status } = spawnSync(process.execPath, [runner, ...words], {
    encoding: "utf8",
    env: { ...process.env, ATTENTION_ONNX_DATA: data },
  });
  return { lastLine: stdout.trimEnd().split("\n").at(-1)!, output: stdout, code: status };
}

/** Reads a tensor file, changes it and writes it back. */
function edit(file: string, change: (tensor: { data: Float32Array; shape: number[] }) => void): void {
  const tensor = decodeTensor(readFileSync(file));
  change(tensor);
  writeFileSync(file, encodeTensor(tensor));
}

describe("the runner of ONNX's cases", () => {
  test("passes what is right, and counts what is not offered as skipped", () => {
    const { root } = makeCheckout("right");
    expect(run([root])).toMatchObject({ lastLine: "1 passed, 0 failed, 1 skipped", code: 0 });
    expect(run([], root)).toMatchObject({ lastLine: "1 passed, 0 failed, 1 skipped", code: 0 });
    expect(run([join(root, "onnx/backend/test/data/node")]).lastLine).toBe("1 passed, 0 failed, 1 skipped");
  });

  test("fails when one expected value is changed, in any output", () => {
    for (const file of ["output_0.pb", "output_1.pb"]) {
      const { root, data } = makeCheckout(`changed-${file}`);
      edit(join(data, file), (tensor) => (tensor.data[0]! += 1e-4));
      const { lastLine, output, code } = run([root]);
      expect(lastLine).toBe("0 passed, 1 failed, 1 skipped");
      expect(code).toBe(1);
      expect(output).toMatch(/^FAILED attention_tiny: .*differs in 1 of/m);
    }
  });

  test("fails when an expected value is NaN or infinite and the result is not", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const { root, data } = makeCheckout(`special-${value}`);
      edit(join(data, "output_0.pb"), (tensor) => (tensor.data[0] = value));
      expect(run([root])).toMatchObject({ lastLine: "0 passed, 1 failed, 1 skipped", code: 1 });
    }
  });

  test("fails when an expected shape is another one", () => {
    const { root, data } = makeCheckout("shape");
    edit(join(data, "output_0.pb"), (tensor) => (tensor.shape = [1, 1, 1]));
    expect(run([root])).toMatchObject({ lastLine: "0 passed, 1 failed, 1 skipped", code: 1 });
  });

  test("fails when expected outputs, inputs or the whole data set are missing", () => {
    for (const gone of ["output_0.pb", "output_1.pb", "input_1.pb", ""]) {
      const { root, data } = makeCheckout(`missing-${gone}`);
      rmSync(join(data, gone), { recursive: true });
      expect(run([root])).toMatchObject({ lastLine: "0 passed, 1 failed, 1 skipped", code: 1 });
    }
  });

  test("fails for an empty folder, and for one that is not there", () => {
    const empty = join(scratch, "empty");
    mkdirSync(empty);
    expect(run([empty])).toMatchObject({ lastLine: "0 passed, 1 failed, 0 skipped", code: 1 });
    expect(run([join(scratch, "nowhere")])).toMatchObject({ lastLine: "0 passed, 1 failed, 0 skipped", code: 1 });
  });

  test("fails for a binary that cannot be run", () => {
    const { root } = makeCheckout("binary");
    expect(run([root, "--binary", "nonsense"]).code).toBe(1);
  });

  test("reports itself skipped without a folder", () => {
    const { lastLine, output, code } = run([]);
    expect(lastLine).toBe("0 passed, 0 failed, 1 skipped");
    expect(output).toMatch(/^skipped: no folder given/);
    expect(code).toBe(0);
  });
});
