/** Threads, where SharedArrayBuffer is there: the same bits, ended by dispose, one thread with a reason elsewhere (T06, S04, N20). */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Attention, type AttentionError, loadAttention } from "attention-wasm";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { packageFolder } from "./package-folder.js";
import { randomTensor } from "./reference.js";

const folder = mkdtempSync(join(tmpdir(), "attention-wasm-threads-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const instances: Attention[] = [];
const load = async (options: Parameters<typeof loadAttention>[0]): Promise<Attention> => {
  const attn = await loadAttention(options);
  instances.push(attn);
  return attn;
};
afterEach(() => {
  for (const attn of instances.splice(0)) attn.dispose();
});

const tensors = (length: number) => {
  const shape = [2, 4, length, 64];
  return [randomTensor(shape, 1), randomTensor(shape, 2), randomTensor(shape, 3)] as const;
};

describe("threads", () => {
  it("N20: any number of threads gives the same bits", async () => {
    const one = await load({ variant: "simd" });
    const inputs = tensors(130);
    const options = { causal: true, returnWeights: "mean", returnLse: true } as const;
    const expected = one.scaledDotProductAttention(...inputs, options);
    for (const threads of [2, 3]) {
      const attn = await load({ variant: "simd", threads });
      expect(attn.selection).toMatchObject({ variant: "simd", threads, threadsReason: `${threads} threads, as asked for` });
      expect(attn.threads).toBe(threads);
      for (let round = 0; round < 2; round++) expect(attn.scaledDotProductAttention(...inputs, options)).toEqual(expected);
      const { data } = attn.scaledDotProductAttention(...inputs).output;
      expect(data.buffer).toBeInstanceOf(ArrayBuffer); // the memory is shared, results are not
      expect(data.buffer.byteLength).toBe(data.byteLength);
    }
  });

  it("views follow the growth of shared memory", async () => {
    const attn = await load({ threads: 2 });
    const buffer = attn.buffer([4, 4]);
    const kept = buffer.data;
    kept.set(randomTensor([4, 4], 1).data);
    const before = attn.memory.totalBytes;
    const large = attn.buffer([2 ** 21]);
    expect(attn.memory.totalBytes).toBeGreaterThan(before);
    large.data.fill(1, 2 ** 21 - 10);
    expect(large.data.length).toBe(2 ** 21);
    expect(Array.from(buffer.data)).toEqual(Array.from(randomTensor([4, 4], 1).data));
    const arrays = { data: Float32Array.from(buffer.data), shape: [4, 4] };
    expect(attn.scaledDotProductAttention(buffer, buffer, buffer).output.data).toEqual(
      attn.scaledDotProductAttention(arrays, arrays, arrays).output.data,
    );
    // Growth does not detach shared memory, so a view that was kept stays good.
    expect(kept.length).toBe(16);
    const view = { data: kept, shape: [4, 4] };
    expect(attn.scaledDotProductAttention(view, view, view).output.data).toEqual(
      attn.scaledDotProductAttention(arrays, arrays, arrays).output.data,
    );
  });

  it("T06: dispose ends the workers, and use after it says so", async () => {
    const attn = await loadAttention({ threads: 2 });
    attn.dispose();
    attn.dispose();
    let caught: AttentionError | undefined;
    try {
      attn.scaledDotProductAttention(...tensors(8));
    } catch (error) {
      caught = error as AttentionError;
    }
    expect(caught?.code).toBe("disposed");
  });

  it("M11, T06: a script ends by itself, disposed or not, without a word", () => {
    for (const last of ["", "attn.dispose();"]) {
      const script = join(folder, `script${last.length}.mjs`);
      writeFileSync(
        script,
        `
        const { loadAttention, tensor } = await import(${JSON.stringify(pathToFileURL(join(packageFolder, "index.js")).href)});
        const before = process.eventNames().length;
        const attn = await loadAttention({ threads: 2 });
        if (attn.threads !== 2 || process.eventNames().length !== before) throw new Error(JSON.stringify(attn.selection) + process.eventNames());
        const x = tensor(new Float32Array(256 * 64), [256, 64]);
        attn.scaledDotProductAttention(x, x, x);
        ${last}
      `,
      );
      expect(execFileSync(process.execPath, [script], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 20_000 })).toBe("");
    }
  });

  it("T06: without SharedArrayBuffer there is one thread and a reason", async () => {
    vi.stubGlobal("SharedArrayBuffer", undefined);
    const without = await load({ threads: 4 });
    vi.unstubAllGlobals();
    expect(without.threads).toBe(1);
    expect(without.selection.threadsReason).toMatch(/^1 thread: SharedArrayBuffer is not available/);
    vi.stubGlobal("crossOriginIsolated", false);
    const page = await load({ threads: 4 });
    vi.unstubAllGlobals();
    expect(page.selection.threadsReason).toBe("1 thread: the page is not cross-origin isolated");
    expect(page.scaledDotProductAttention(...tensors(8)).output.data.length).toBe(2 * 4 * 8 * 64);
  });

  it("P05: a file with threads, or without, can be handed in", async () => {
    const given = await load({ wasm: readFileSync(join(packageFolder, "attention.simd-threads.wasm")), threads: 2 });
    expect(given.threads).toBe(2);
    const single = await load({ wasm: readFileSync(join(packageFolder, "attention.simd-threads.wasm")) });
    expect(single.threads).toBe(1);
    const other = await load({ wasm: readFileSync(join(packageFolder, "attention.simd.wasm")), threads: 2 });
    expect(other.selection).toMatchObject({ threads: 1, threadsReason: "1 thread: the given file was built without threads" });
    const inputs = tensors(8);
    const results = [given, single, other].map((attn) => Array.from(attn.scaledDotProductAttention(...inputs).output.data));
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });
});
