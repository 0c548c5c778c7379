/** The README's code, run as it stands: what people copy first has to work. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeConsumer, runNode } from "./consumer";

const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
const snippets = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]);
const consumer = makeConsumer("readme", { "readme.mjs": snippets.join("\n") });
afterAll(() => consumer.remove());

test("the snippets run one after the other and print what their comments say", () => {
  expect(snippets.length).toBeGreaterThanOrEqual(3);
  const { code, stdout, stderr } = runNode([join(consumer.folder, "readme.mjs")]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^\[ 3, 2 \] Float32Array\(6\) \[\s*1,\s*2,/); // the first query sees the first key alone
  expect(stdout).toContain("'maskedScores'");
  expect(stdout).toMatch(/^3 Float32Array\(4\)/m); // the cache holds three positions at the end
});

test("every path that the README imports resolves", () => {
  const names = new Set([...readme.matchAll(/["`](attention-wasm(?:\/[\w.-]+)?)["`]/g)].map((match) => match[1]));
  expect([...names]).toContain("attention-wasm/inline");
  for (const name of names) {
    const { code, stderr } = runNode(["--input-type=module", "-e", `import.meta.resolve(${JSON.stringify(name)})`], {
      cwd: consumer.folder,
    });
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: "" });
  }
});
