/** The published declarations, under the strictest settings that users have. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { makeConsumer, repository } from "./consumer";

const consumer = makeConsumer("types", {
  "use.ts": `
    import { AttentionError, type Attention, loadAttention, tensor } from "attention-wasm";
    import { loadAttention as loadInline } from "attention-wasm/inline";
    import * as onnx from "attention-wasm/onnx";

    export async function run(): Promise<Float32Array> {
      const attn: Attention = await loadAttention({ variant: "auto", threads: 1 });
      const q = tensor(new Float32Array(6), [2, 3]);
      try {
        const { output, weights } = attn.scaledDotProductAttention(q, q, q, { causal: true, returnWeights: true });
        const shape: readonly number[] = weights.shape;
        void shape;
        return output.data;
      } catch (error) {
        if (error instanceof AttentionError) throw new Error(error.code satisfies string);
        throw error;
      } finally {
        attn.dispose();
      }
    }
    // @ts-expect-error a misspelt option is an error
    export const wrong = (attn: Attention, q: Float32Array) => attn.scaledDotProductAttention(q, q, q, { casual: true });
    export { loadInline, onnx };
  `,
  "use.cts": `import type { Attention } from "attention-wasm" with { "resolution-mode": "import" };
    export type Loaded = Awaited<ReturnType<typeof import("attention-wasm").loadAttention>>;
    export const same = (attn: Loaded): Attention => attn;`,
});
afterAll(() => consumer.remove());

function compile(settings: Record<string, string>, file: string) {
  const options = Object.entries({ target: "ES2022", lib: "ES2022,DOM,ESNext.Disposable", ...settings }).flatMap(([name, value]) => [
    `--${name}`,
    value,
  ]);
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      join(repository, "node_modules/typescript/bin/tsc"),
      "--noEmit",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--noUncheckedIndexedAccess",
      ...["--skipLibCheck", "false", "--types", ""],
      ...options,
      file,
    ],
    { cwd: consumer.folder, encoding: "utf8" },
  );
  return { status, stdout };
}

describe("types", () => {
  for (const [module, moduleResolution] of [
    ["node16", "node16"],
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ] as const) {
    test(`from import, moduleResolution ${moduleResolution}`, () => {
      expect(compile({ module, moduleResolution }, "use.ts")).toEqual({ status: 0, stdout: "" });
    });
  }

  test("from a CommonJS file", () => {
    expect(compile({ module: "nodenext", moduleResolution: "nodenext" }, "use.cts")).toEqual({ status: 0, stdout: "" });
  });
});
