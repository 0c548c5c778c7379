/** The parameter blocks of layer, cache and rotary positions, which hold blocks inside: the same words in C++ and in TypeScript. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const source = (path: string) => readFileSync(new URL(`../../src/${path}`, import.meta.url), "utf8");
const headers = ["attention", "rotary", "kv_cache", "self_attention"].map((name) => source(`bindings/${name}_block.h`)).join("\n");

/** Number of words of each struct, and where each field begins. */
function layout(struct: string): { words: number; fields: Map<string, number> } {
  const body = headers.slice(headers.indexOf(`struct ${struct} {`)).split("};")[0]!;
  const fields = new Map<string, number>();
  let words = 0;
  for (const [, type, name] of body.matchAll(/^\s+([\w:]+) (\w+);/gm)) {
    fields.set(
      name!.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      words,
    );
    words += type!.endsWith("Block") ? layout(type!).words : 1;
  }
  return { words, fields };
}

function entries(file: string, name: string): [string, number][] {
  const body = source(file).split(`export const ${name} = {`)[1]!.split("}")[0]!;
  return [...body.matchAll(/^\s+(\w+): (\d+),/gm)].map(([, word, index]) => [word!, Number(index)]);
}

describe("parameter blocks with blocks inside", () => {
  it.each([
    ["SelfAttentionBlock", "js/self-attention-block.ts"],
    ["RotaryBlock", "js/rotary-block.ts"],
    ["KvCacheBlock", "js/kv-cache-block.ts"],
    ["KvAppendBlock", "js/kv-cache-block.ts"],
  ])("%s", (struct, file) => {
    const { fields } = layout(struct);
    const words = entries(file, struct);
    expect(words.length).toBeGreaterThan(8);
    // In TypeScript the parts of inner blocks of SelfAttentionBlock have names of their own.
    const inner: Record<string, [string, number]> = {
      rotaryCos: ["rotary", 0],
      rotarySin: ["rotary", 1],
      rotaryNumRows: ["rotary", 2],
      rotaryDim: ["rotary", 3],
      rotaryInterleaved: ["rotary", 4],
      queryPositionsRows: ["queryPositions", 0],
      queryPositionsBatchStride: ["queryPositions", 1],
      keyPositionsRows: ["keyPositions", 0],
      keyPositionsBatchStride: ["keyPositions", 1],
    };
    for (const [word, index] of words) {
      const [field, offset] = struct === "SelfAttentionBlock" && word in inner ? inner[word]! : [word, 0];
      expect(`${word} ${index}`).toBe(`${word} ${fields.get(field)! + offset}`);
    }
    const covered = new Set(words.map(([word]) => (struct === "SelfAttentionBlock" ? (inner[word]?.[0] ?? word) : word)));
    const missing = [...fields.keys()].filter((field) => !covered.has(field) && !(struct === "KvAppendBlock" && field === "cache"));
    expect(missing).toEqual([]);
  });

  it("sizes", () => {
    const constant = (file: string, name: string) => Number(new RegExp(`${name} = (\\d+);`).exec(source(file))![1]);
    expect(constant("js/rotary-block.ts", "ROTARY_BLOCK_WORDS")).toBe(layout("RotaryBlock").words);
    expect(constant("js/kv-cache-block.ts", "KV_CACHE_BLOCK_WORDS")).toBe(layout("KvCacheBlock").words);
    expect(constant("js/kv-cache-block.ts", "KV_APPEND_BLOCK_WORDS")).toBe(layout("KvAppendBlock").words);
    expect(layout("SelfAttentionBlock").words).toBe(layout("SelfAttentionBlock").fields.get("attention")! + layout("AttentionBlock").words);
  });
});
