/** The parameter blocks are written by TypeScript and read by C++: both files must list the same words in the same order. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const source = (path: string) => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");

function wordsInCpp(text: string, struct: string): string[] {
  const body = text.slice(text.indexOf(`struct ${struct} {`)).split("};")[0]!;
  const fields = [...body.matchAll(/^\s+(?:Pointer|float|std::u?int32_t) (\w+);/gm)].map(([, name]) => name!);
  return fields.map((name) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()));
}

function wordsInTypeScript(text: string, name: string): string[] {
  const body = text.slice(text.indexOf(`export const ${name} = {`)).split("}")[0]!;
  const entries = [...body.matchAll(/^\s+(\w+): (\d+),/gm)];
  for (const [i, [, word, index]] of entries.entries()) expect(`${word} ${index}`).toBe(`${word} ${i}`);
  return entries.map(([, word]) => word!);
}

describe("parameter blocks", () => {
  it.each([
    ["AttentionBlock", "bindings/attention_block.h", "js/attention-block.ts", "ATTENTION_BLOCK_WORDS"],
    ["PackBlock", "bindings/projection_block.h", "js/projection-block.ts", "PACK_BLOCK_WORDS"],
    ["ProjectionBlock", "bindings/projection_block.h", "js/projection-block.ts", "PROJECTION_BLOCK_WORDS"],
  ])("%s has the same words in C++ and in TypeScript", (name, cpp, ts, count) => {
    const words = wordsInCpp(source(cpp), name);
    expect(words.length).toBeGreaterThan(5);
    expect(wordsInTypeScript(source(ts), name)).toEqual(words);
    expect(source(ts)).toContain(`${count} = ${words.length};`);
  });

  it("the version of the interface is the same number", () => {
    const cpp = /kAbiVersion = (\d+);/.exec(source("bindings/abi.h"))![1];
    expect(/ABI_VERSION = (\d+);/.exec(source("js/glue-module.ts"))![1]).toBe(cpp);
  });

  it.each([
    ["Status", "include/attn/status.h", "js/glue-module.ts"],
    ["MatrixStage", "include/attn/attention.h", "js/attention-block.ts"],
    ["KvType", "include/attn/attention.h", "js/attention-block.ts"],
    ["WeightType", "include/attn/projection.h", "js/projection-block.ts"],
  ])("the values of %s are the same", (name, cpp, ts) => {
    const body = source(cpp).split(`enum class ${name}`)[1]!.split("};")[0]!;
    const values = [...body.matchAll(/(\w+) = (-?\d+)/g)].map(([, , value]) => Number(value)).sort((a, b) => a - b);
    const other = source(ts).split(`export const ${name} = {`)[1]!.split("}")[0]!;
    const mirrored = [...other.matchAll(/(\w+): (-?\d+)/g)].map(([, , value]) => Number(value)).sort((a, b) => a - b);
    expect(mirrored).toEqual(values);
  });
});
