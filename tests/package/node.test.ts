/** The installed package in Node, as a stranger's program uses it. */
import { afterAll, describe, expect, test } from "vitest";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeConsumer, runNode, smokeSource } from "./consumer";

const consumer = makeConsumer("a folder with spaces, 100% odd", {
  "smoke.mjs": `import { loadAttention } from "attention-wasm";
    const before = JSON.stringify([process.eventNames().map(String), Object.getOwnPropertyNames(globalThis)]);
    ${smokeSource}
    const after = JSON.stringify([process.eventNames().map(String), Object.getOwnPropertyNames(globalThis)]);
    console.log(answer, before === after ? "no trace" : before + after);`,
  "threads.mjs": `import { loadAttention } from "attention-wasm";
    const before = Object.getOwnPropertyNames(globalThis).length;
    ${smokeSource.replace("loadAttention()", "loadAttention({ threads: 2 })")}
    console.log(answer, attn.threads, attn.selection?.threadsReason ?? "", Object.getOwnPropertyNames(globalThis).length - before);
    attn.dispose();`,
  "inline.mjs": `import { loadAttention } from "attention-wasm/inline"; ${smokeSource} console.log(answer);`,
  "subpath.mjs": `import { readFileSync } from "node:fs"; import { fileURLToPath } from "node:url";
    const url = import.meta.resolve("attention-wasm/attention.simd.wasm");
    console.log(WebAssembly.validate(readFileSync(fileURLToPath(url))));`,
  "require.cjs": `try {
      const { loadAttention } = require("attention-wasm");
      (async () => { ${smokeSource} console.log(answer); })();
    } catch (error) { console.log(error.code); }`,
});
afterAll(() => consumer.remove());
const file = (name: string) => join(consumer.folder, name);

describe("in Node", () => {
  test("import works from a folder with odd characters and from any working directory, silently, and leaves no trace", () => {
    expect(runNode([file("smoke.mjs")], { cwd: tmpdir() })).toEqual({ code: 0, stdout: "3.00000 no trace\n", stderr: "" });
  });

  test("works where code may not be made from strings", () => {
    expect(runNode(["--disallow-code-generation-from-strings", file("smoke.mjs")])).toMatchObject({ code: 0, stderr: "" });
  });

  test("two threads give the same answer, define no globals, and end with the program", () => {
    const { code, stdout, stderr } = runNode([file("threads.mjs")]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^3\.00000 2 .* 0\n$/);
  });

  test("attention-wasm/inline needs no file", () => {
    expect(runNode([file("inline.mjs")])).toEqual({ code: 0, stdout: "3.00000\n", stderr: "" });
  });

  test("the binaries can be imported by name", () => {
    expect(runNode([file("subpath.mjs")])).toMatchObject({ code: 0, stdout: "true\n" });
  });

  test("require() works, or says that this is an ES module", () => {
    // Node 20.19 and newer load ES modules by require; some versions warn that this is new.
    const { code, stdout } = runNode([file("require.cjs")]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^(3\.00000|ERR_REQUIRE_ESM)\n$/);
  });
});
