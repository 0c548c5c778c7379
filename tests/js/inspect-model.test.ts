/** The example that draws the attention of a model's file: on small files with the names and the parts of real ones. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bytePair } from "../../web/examples/inspect/byte-pair.mjs";
import { erf } from "../../web/examples/inspect/layers.mjs";
import { wordPiece } from "../../web/examples/inspect/wordpiece.mjs";
import { inspect } from "../../web/examples/inspect-model.mjs";
import { add, gelu, geluTanh, layerNorm, map } from "./float64-block.js";
import { project, referenceLayer } from "./layer-reference.js";
import { drawWeights, families, type Named, type Numbers, transpose } from "./layer-weights.js";
import { error, randomTensor } from "./reference.js";
import { type FileType, rounded, safetensorsBytes } from "./safetensors-file.js";

const EMBED = 24;
const HEADS = 3;
const WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "un", "##happy", ",", "!", "cafe", "猫"];
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "inspect-model-"));
});
afterAll(() => rm(folder, { recursive: true }));

const named = (prefix: string, tensors: Named): Named =>
  Object.fromEntries(Object.entries(tensors).map(([name, value]) => [prefix + name, value]));
const norm = (seed: number): Named => ({
  weight: { data: randomTensor([EMBED], seed, 0.2).data.map((value) => 1 + value), shape: [EMBED] },
  bias: randomTensor([EMBED], seed + 1, 0.2),
});
const widened = (tensors: Named, type: FileType): Named =>
  Object.fromEntries(
    Object.entries(tensors).map(([name, { data, shape }]) => [name, { data: data.map((number) => rounded(number, type)), shape }]),
  );

function bertFile(layers: number): Named {
  const file: Named = {
    ...named("embeddings.", {
      "word_embeddings.weight": randomTensor([WORDS.length, EMBED], 1),
      "position_embeddings.weight": randomTensor([16, EMBED], 2),
      "token_type_embeddings.weight": randomTensor([2, EMBED], 3),
    }),
    ...named("embeddings.LayerNorm.", norm(4)),
  };
  for (let i = 0; i < layers; i++) {
    const weights = drawWeights(EMBED, HEADS, HEADS, EMBED / HEADS, 100 * i + 10);
    Object.assign(
      file,
      named(`encoder.layer.${i}.attention.`, families["BERT"]!.name(weights, HEADS, HEADS)),
      named(`encoder.layer.${i}.attention.output.LayerNorm.`, norm(100 * i + 20)),
      named(`encoder.layer.${i}.intermediate.dense.`, {
        weight: randomTensor([40, EMBED], 100 * i + 30, 0.2),
        bias: randomTensor([40], 100 * i + 31, 0.2),
      }),
      named(`encoder.layer.${i}.output.dense.`, {
        weight: randomTensor([EMBED, 40], 100 * i + 32, 0.2),
        bias: randomTensor([EMBED], 100 * i + 33, 0.2),
      }),
      named(`encoder.layer.${i}.output.LayerNorm.`, norm(100 * i + 40)),
    );
  }
  return file;
}

function bertWeights(file: Named, ids: number[], wanted: number): Float64Array {
  const get = (name: string): Numbers => file[name]!;
  const row = (name: string, at: number, i: number) => get(name).data[at * EMBED + i]!;
  const sum = ids.flatMap((id, t) =>
    Array.from(
      { length: EMBED },
      (_, i) =>
        row("embeddings.word_embeddings.weight", id, i) +
        row("embeddings.position_embeddings.weight", t, i) +
        row("embeddings.token_type_embeddings.weight", 0, i),
    ),
  );
  const normed = (x: Parameters<typeof layerNorm>[0], name: string) => layerNorm(x, get(`${name}.weight`), get(`${name}.bias`), 1e-12);
  let x = normed({ data: sum, shape: [ids.length, EMBED] }, "embeddings.LayerNorm");
  for (let i = 0; ; i++) {
    const at = `encoder.layer.${i}`;
    const part = (name: string, kind: string) => get(`${at}.attention.${name}.${kind}`);
    const weights = {
      wq: part("self.query", "weight"),
      wk: part("self.key", "weight"),
      wv: part("self.value", "weight"),
      wo: part("output.dense", "weight"),
      bq: part("self.query", "bias"),
      bk: part("self.key", "bias"),
      bv: part("self.value", "bias"),
      bo: part("output.dense", "bias"),
    };
    const { output, attention } = referenceLayer(x, weights, { numHeads: HEADS });
    if (i === wanted) return attention.weights;
    x = normed(add(x, output), `${at}.attention.output.LayerNorm`);
    const inner = map(project(x, get(`${at}.intermediate.dense.weight`), get(`${at}.intermediate.dense.bias`)), gelu);
    x = normed(add(x, project(inner, get(`${at}.output.dense.weight`), get(`${at}.output.dense.bias`))), `${at}.output.LayerNorm`);
  }
}

function gpt2File(layers: number): Named {
  const file: Named = { "wte.weight": randomTensor([300, EMBED], 1), "wpe.weight": randomTensor([16, EMBED], 2) };
  for (let i = 0; i < layers; i++) {
    const weights = drawWeights(EMBED, HEADS, HEADS, EMBED / HEADS, 100 * i + 10);
    Object.assign(
      file,
      named(`h.${i}.attn.`, { ...families["GPT-2"]!.name(weights, HEADS, HEADS), bias: randomTensor([1, 1, 16, 16], 1) }),
      named(`h.${i}.ln_1.`, norm(100 * i + 20)),
      named(`h.${i}.ln_2.`, norm(100 * i + 40)),
      named(`h.${i}.mlp.`, {
        "c_fc.weight": randomTensor([EMBED, 40], 100 * i + 30, 0.2),
        "c_fc.bias": randomTensor([40], 100 * i + 31, 0.2),
        "c_proj.weight": randomTensor([40, EMBED], 100 * i + 32, 0.2),
        "c_proj.bias": randomTensor([EMBED], 100 * i + 33, 0.2),
      }),
    );
  }
  return file;
}

function gpt2Weights(file: Named, ids: number[], wanted: number): Float64Array {
  const get = (name: string): Numbers => file[name]!;
  const normed = (x: Parameters<typeof layerNorm>[0], name: string) => layerNorm(x, get(`${name}.weight`), get(`${name}.bias`), 1e-5);
  let x: ReturnType<typeof layerNorm> = {
    data: Float64Array.from(
      ids.flatMap((id, t) =>
        Array.from({ length: EMBED }, (_, i) => get("wte.weight").data[id * EMBED + i]! + get("wpe.weight").data[t * EMBED + i]!),
      ),
    ),
    shape: [ids.length, EMBED],
  };
  for (let i = 0; ; i++) {
    const weights = drawWeights(EMBED, HEADS, HEADS, EMBED / HEADS, 100 * i + 10);
    const { output, attention } = referenceLayer(normed(x, `h.${i}.ln_1`), weights, { numHeads: HEADS, causal: true });
    if (i === wanted) return attention.weights;
    x = add(x, output);
    const inner = map(project(normed(x, `h.${i}.ln_2`), transpose(get(`h.${i}.mlp.c_fc.weight`)), get(`h.${i}.mlp.c_fc.bias`)), geluTanh);
    x = add(x, project(inner, transpose(get(`h.${i}.mlp.c_proj.weight`)), get(`h.${i}.mlp.c_proj.bias`)));
  }
}

async function place(name: string, files: Record<string, string | Uint8Array>): Promise<string> {
  const at = join(folder, name);
  const { mkdir } = await import("node:fs/promises");
  await mkdir(at);
  for (const [file, content] of Object.entries(files)) await writeFile(join(at, file), content);
  return join(at, "model.safetensors");
}

describe("a BERT", () => {
  it.each(["F32", "F16"] as const)("as %s, prefixed: the weights of every layer", async (type) => {
    const file = bertFile(3);
    const path = await place(`bert-${type}`, {
      "model.safetensors": safetensorsBytes({ ...named("bert.", file), "bert.embeddings.position_ids": randomTensor([0], 1) }, () => type),
      "config.json": JSON.stringify({ num_attention_heads: HEADS, layer_norm_eps: 1e-12 }),
      "vocab.txt": `${WORDS.join("\n")}\n`,
    });
    for (let layer = 0; layer < 3; layer++) {
      const { weights, ids, labels, layers } = await inspect(path, "The cats,\tUNHAPPY!", { layer });
      expect(labels).toEqual(["[CLS]", "the", "cat", "##s", ",", "un", "##happy", "!", "[SEP]"]);
      expect(layers).toBe(3);
      expect(error(weights.data, bertWeights(widened(file, type), ids, layer))).toBeLessThan(1);
    }
  });
});

describe("a GPT-2", () => {
  it("ids and text: the weights of every layer", async () => {
    const letters = Object.fromEntries(Array.from({ length: 94 }, (_, i) => [String.fromCharCode(33 + i), i]));
    const file = gpt2File(2);
    const path = await place("gpt2", {
      "model.safetensors": safetensorsBytes(file),
      "config.json": JSON.stringify({ n_head: HEADS }),
      "vocab.json": JSON.stringify({ ...letters, Ġ: 100, Ġt: 101, he: 102, Ġthe: 103 }),
      "merges.txt": "#version: 0.2\nh e\nĠ t\nĠt he\n",
    });
    for (let layer = 0; layer < 2; layer++) {
      const { weights, ids, labels } = await inspect(path, "he the th", { layer });
      expect(labels).toEqual(["he", "_the", "_t", "h"]);
      expect(ids).toEqual([102, 103, 101, 71]);
      expect(error(weights.data, gpt2Weights(file, ids, layer))).toBeLessThan(1);
      expect((await inspect(path, "102, 103 101 71", { layer })).weights).toEqual(weights);
    }
    await expect(inspect(path, "299 300", { layer: 0 })).rejects.toThrow("below 300");
    await expect(inspect(path, "1", { layer: 2 })).rejects.toThrow("0 to 1");
    await expect(inspect(path, Array(17).fill("1").join(" "), { layer: 0 })).rejects.toThrow("at most 16");
  });

  it("the command prints a picture; failures are one sentence", async () => {
    const path = await place("gpt2-bare", { "model.safetensors": safetensorsBytes(gpt2File(1)) });
    const script = fileURLToPath(new URL("../../web/examples/inspect-model.mjs", import.meta.url));
    const run = (...args: string[]) => promisify(execFile)(process.execPath, [script, ...args]);
    const { stdout } = await run(path, "--heads", "3", "--head", "1", "5 6 7");
    expect(stdout).toContain("layer 0 of 1, head 1 of 3");
    expect(stdout).toContain("1.000000");
    await expect(run(path, "5 6 7")).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("say --heads N") });
    await expect(run(path, "--heads", "3", "some text")).rejects.toMatchObject({ stderr: expect.stringContaining("vocab.json") });
  });
});

describe("parts", () => {
  it("the error function", () => {
    for (let x = -4; x <= 4; x += 0.125)
      expect(Math.abs(erf(x) - (2 * gelu(x * Math.SQRT2)) / (x * Math.SQRT2 || 1) + (x === 0 ? 0 : 1))).toBeLessThan(1e-9);
    expect([erf(0), erf(1).toFixed(10), erf(-7)]).toEqual([0, "0.8427007929", -1]);
  });

  it("WordPiece: accents, signs, Chinese characters, unknown words", () => {
    const tokenizer = wordPiece(new Map(WORDS.map((word, id) => [word, id])), { lowerCase: true });
    const labels = (text: string) => tokenizer.encode(text).map(tokenizer.label).slice(1, -1);
    expect(labels("Café 猫猫 dogs")).toEqual(["cafe", "猫", "猫", "[UNK]"]);
    expect(labels("")).toEqual([]);
  });

  it("byte pairs: any text comes back", () => {
    const letters = bytePair(new Map(), []);
    expect(() => letters.encode("a")).toThrow("has no a");
    const bytes = [...Array(256).keys()].map((byte) =>
      String.fromCodePoint((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174 ? byte : 0),
    );
    let next = 256;
    const all = bytePair(new Map(bytes.map((letter, byte) => [letter === "\0" ? String.fromCodePoint(next++) : letter, byte])), []);
    const text = "naïve 猫\n I'll";
    expect(all.encode(text)).toEqual([...new TextEncoder().encode(text)]);
  });
});
