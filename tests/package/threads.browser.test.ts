/** Threads in a page (T06): the same bits as with one thread where the page is isolated; one thread and the reason where it is not. */
import { type Browser, chromium } from "playwright-core";
import { build as vite } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf } from "./answer-of";
import { type Consumer, makeConsumer } from "./consumer";
import { serveFolder } from "./serve-folder";

const isolated = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

// Large enough to be shared among threads; the bits of all results go into one number.
const script = `import { loadAttention } from "attention-wasm";
  async function run(threads) {
    const attn = await loadAttention({ variant: "simd", threads });
    const data = Float32Array.from({ length: 4 * 300 * 64 }, (_, i) => Math.sin(i * 0.37));
    const x = { data, shape: [1, 4, 300, 64] };
    let bits = 0;
    for (let round = 0; round < 5; round++) {
      const { output } = attn.scaledDotProductAttention(x, x, x, { causal: true });
      bits = new Uint32Array(output.data.buffer).reduce((sum, word) => (Math.imul(sum, 31) + word) | 0, bits);
    }
    const { threads: got, selection } = attn;
    attn.dispose();
    return { bits, got, reason: selection.threadsReason };
  }
  Promise.all([run(1), run(3)])
    .then((answers) => { document.getElementById("answer").textContent = JSON.stringify(answers); })
    .catch((error) => { document.getElementById("answer").textContent = String(error); });`;

let browser: Browser;
let consumer: Consumer;
beforeAll(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] as string, args: ["--no-sandbox"] });
  consumer = makeConsumer("threads", {
    "main.js": script,
    "index.html": `<!doctype html><meta charset="utf-8"><title>test</title><p id="answer"></p><script type="module" src="./main.js"></script>`,
  });
  await vite({ root: consumer.folder, base: "./", logLevel: "error", configFile: false, build: { outDir: "out" } });
});
afterAll(async () => {
  await browser?.close();
  consumer?.remove();
});

interface Answer {
  bits: number;
  got: number;
  reason: string;
}

async function answersOf(headers: Record<string, string>): Promise<[Answer, Answer]> {
  const server = await serveFolder(consumer.folder, headers);
  try {
    return JSON.parse(await answerOf(browser, `${server.address}out/index.html`));
  } finally {
    server.stop();
  }
}

describe("threads in a page", () => {
  test("that is isolated: as many as asked for, and the same bits", async () => {
    const [one, three] = await answersOf(isolated);
    expect(one.got).toBe(1);
    expect(three).toEqual({ bits: one.bits, got: 3, reason: "3 threads, as asked for" });
  });

  test("that is not: one, and why", async () => {
    const [one, three] = await answersOf({});
    expect(three.got).toBe(1);
    expect(three.reason).toMatch(/Cross-Origin-Opener-Policy|not cross-origin isolated/);
    expect(three.bits).toBe(one.bits);
  });
});
