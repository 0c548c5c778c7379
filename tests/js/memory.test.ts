/** Memory and life cycle: part M of the user cases, each under its number. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Attention, AttentionError, loadAttention, tensor } from "attention-wasm";
import { beforeEach, describe, expect, it } from "vitest";
import { packageFolder } from "./package-folder.js";
import { randomTensor } from "./reference.js";
import { thrown } from "./thrown.js";

let attn: Attention;
beforeEach(async () => {
  attn = await loadAttention();
});

const MiB = 2 ** 20;
const floats = (...shape: number[]) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });

describe("memory", () => {
  it("M01: results survive growth", () => {
    const x = randomTensor([5, 8], 1);
    const first = attn.scaledDotProductAttention(x, x, x, { returnWeights: true, returnLse: true });
    const copies = [first.output, first.weights!, first.lse!].map(({ data }) => Array.from(data));
    const before = attn.memory.totalBytes;
    const large = floats(4096, 256);
    attn.scaledDotProductAttention(randomTensor([1, 256], 1), large, large);
    expect(attn.memory.totalBytes).toBeGreaterThan(before);
    expect([first.output, first.weights!, first.lse!].map(({ data }) => Array.from(data))).toEqual(copies);
  });

  it("M02: results are memory of their own", () => {
    const x = randomTensor([5, 8], 1);
    const result = attn.scaledDotProductAttention(x, x, x, { returnWeights: true, returnLse: true, returnScores: "masked" });
    for (const { data } of [result.output, result.weights!, result.lse!, result.scores!]) {
      expect(data.buffer.byteLength).toBe(data.byteLength);
      expect(data.byteOffset).toBe(0);
      const moved = structuredClone(data, { transfer: [data.buffer as ArrayBuffer] });
      expect(moved.length).toBeGreaterThan(0);
      expect(data.length).toBe(0);
    }
    expect(attn.scaledDotProductAttention(x, x, x).output.data.length).toBe(40);
  });

  it("M03: no growth: equal calls, many shapes, calls that throw", () => {
    const x = randomTensor([1, 8, 8], 1);
    const run = () => attn.scaledDotProductAttention(x, x, x, { causal: true });
    for (let i = 0; i < 100; i++) run();
    const settled = attn.memory;
    for (let i = 0; i < 10_000; i++) run();
    expect(attn.memory).toEqual(settled);

    const round = () => {
      for (let i = 1; i <= 100; i++) {
        const query = floats((i * 7) % 50, 1 + (i % 33));
        const key = floats(1 + ((i * 13) % 170), 1 + (i % 33));
        attn.scaledDotProductAttention(query, key, key, { causal: "bottom-right", returnWeights: i % 3 === 0, returnLse: i % 2 === 0 });
      }
    };
    round();
    const after = attn.memory;
    round();
    expect(attn.memory).toEqual(after);

    for (let i = 0; i < 1000; i++) {
      expect(thrown(() => attn.scaledDotProductAttention(x, x, x, { scale: Number.NaN })).code).toBe("option");
      expect(thrown(() => attn.scaledDotProductAttention(x, x, { data: x.data, shape: [8, 9] })).code).toBe("shape");
    }
    expect(attn.memory).toEqual(after);
    for (let i = 0; i < 1000; i++) attn.buffer([1000]).dispose();
    expect(attn.memory.bytesInUse).toBe(after.bytesInUse);
    expect(attn.memory.totalBytes).toBe(after.totalBytes);
  });

  it("M05: at most 4 MiB after loading, a documented limit, no shared memory", () => {
    expect(attn.memory.totalBytes).toBeLessThanOrEqual(4 * MiB);
    expect(attn.memory.maximumBytes).toBeGreaterThan(2 ** 32 - 2 ** 17);
    expect(attn.memory.bytesInUse).toBeLessThanOrEqual(256 * 1024);
    expect(attn.buffer([1]).data.buffer).toBeInstanceOf(ArrayBuffer);
  });

  it("M06: 4096 × 4096 grows the memory by at most 12 MiB", () => {
    const before = attn.memory.totalBytes;
    const [query, key, value] = [randomTensor([4096, 64], 1), randomTensor([4096, 64], 2), randomTensor([4096, 64], 3)];
    attn.scaledDotProductAttention(query, key, value);
    expect(attn.memory.totalBytes - before).toBeLessThanOrEqual(12 * MiB);
  });

  it("M07: out of memory is an error with the requested size, and the next call works", () => {
    const x = randomTensor([3, 4], 1);
    const expected = Array.from(attn.scaledDotProductAttention(x, x, x).output.data);
    const held = attn.buffer([2]);
    held.data.set([1, 2]);
    const tooLarge = thrown(() => attn.buffer([2 ** 30]));
    expect(tooLarge.code).toBe("memory");
    expect(tooLarge.message).toContain(String(2 ** 32));
    // 3.9 GiB would be there, were it not for these 256 MiB.
    const block = attn.buffer([2 ** 26]);
    const most = Math.floor(0.975 * 2 ** 30);
    const full = thrown(() => attn.buffer([most]));
    expect(full).toBeInstanceOf(AttentionError);
    expect(full).toBeInstanceOf(RangeError);
    expect(full.code).toBe("memory");
    expect(full.message).toContain(String(4 * most));
    expect(Array.from(held.data)).toEqual([1, 2]);
    expect(Array.from(attn.scaledDotProductAttention(x, x, x).output.data)).toEqual(expected);
    // a call that has no room
    const long = floats(32_500, 1);
    const matrix = thrown(() => attn.scaledDotProductAttention(long, long, long, { returnWeights: true }));
    expect(matrix.code).toBe("memory");
    expect(matrix.message).toMatch(/could not get 422\d{7} bytes/);
    expect(Array.from(attn.scaledDotProductAttention(x, x, x).output.data)).toEqual(expected);
    block.dispose();
    expect(attn.scaledDotProductAttention(x, x, x).output.data.length).toBe(12);
  });

  it("M12: inputs are read only, one array may be all of them", () => {
    const x = randomTensor([6, 8], 1);
    const mask = tensor([[true, false, true, true, true, true]]);
    const copy = { x: x.data.slice(), mask: mask.data.slice() };
    const same = attn.scaledDotProductAttention(x, x, x, { mask, returnWeights: true }).output.data;
    expect(x.data).toEqual(copy.x);
    expect(mask.data).toEqual(copy.mask);
    const apart = () => ({ data: x.data.slice(), shape: x.shape });
    expect(attn.scaledDotProductAttention(apart(), apart(), apart(), { mask }).output.data).toEqual(same);
    expect(attn.scaledDotProductAttention(apart(), x, x, { mask }).output.data).toEqual(same);
  });

  it("M04: a disposed instance says so", () => {
    const x = randomTensor([2, 2], 1);
    const buffer = attn.buffer([2]);
    attn.dispose();
    attn.dispose();
    expect(attn.disposed).toBe(true);
    expect(buffer.disposed).toBe(true);
    for (const use of [() => attn.scaledDotProductAttention(x, x, x), () => attn.buffer([1]), () => attn.memory, () => buffer.data]) {
      const error = thrown(use);
      expect(error.code).toBe("disposed");
      expect(error.message).toMatch(/disposed/);
    }
    buffer.dispose();
    expect(typeof (attn as unknown as Record<symbol, unknown>)[Symbol.dispose]).toBe("function");
    expect(["simd", "relaxed"]).toContain(attn.variant);
  });

  it("M11: a script that only loads and computes prints nothing, adds no listener and ends by itself", () => {
    const entry = pathToFileURL(join(packageFolder, "index.js")).href;
    const script = `
      const { loadAttention, tensor } = await import(${JSON.stringify(entry)});
      const count = () => process.eventNames().map((name) => [name, process.listenerCount(name)].join()).sort().join(";");
      const before = count();
      const attn = await loadAttention();
      attn.scaledDotProductAttention(tensor([[1]]), tensor([[1]]), tensor([[1]]));
      if (count() !== before) throw new Error("listeners: " + count());
    `;
    const printed = execFileSync(process.execPath, ["--input-type=module", "--disallow-code-generation-from-strings", "-e", script], {
      cwd: fileURLToPath(new URL(".", import.meta.url)),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 20_000,
    });
    expect(printed).toBe("");
  });
});
