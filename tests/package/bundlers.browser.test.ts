/** A stranger's page, bundled without configuration, in a real Chromium and from a sub-path. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build as esbuild } from "esbuild";
import { type Browser, chromium } from "playwright-core";
import { build as vite } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import webpack from "webpack";
import { answerOf } from "./answer-of";
import { type Consumer, makeConsumer, smokeSource } from "./consumer";
import { type FolderServer, serveFolder } from "./serve-folder";

const page = (script: string) => `<!doctype html><meta charset="utf-8"><title>test</title>
  <meta http-equiv="Content-Security-Policy" content="script-src 'self' 'wasm-unsafe-eval'">
  <p id="answer"></p><script type="module" src="${script}"></script>`;
const entry = `import { loadAttention } from "attention-wasm";
  (async () => { ${smokeSource} document.getElementById("answer").textContent = answer; })()
    .catch((error) => { document.getElementById("answer").textContent = String(error); });`;

let browser: Browser;
let server: FolderServer;
let consumer: Consumer;

beforeAll(async () => {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] as string, args: ["--no-sandbox"] });
  consumer = makeConsumer("bundled", { "main.js": entry, "index.html": page("./main.js"), "plain/index.html": page("./main.js") });
  server = await serveFolder(consumer.folder);
});
afterAll(async () => {
  await browser?.close();
  server?.stop();
  consumer?.remove();
});

function nodeModulesIn(folder: string): string[] {
  const scripts = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
  return scripts.filter((file) => /["'](node:\w+|worker_threads)["']/.test(readFileSync(join(folder, file), "utf8")));
}

describe("bundled by", () => {
  test("Vite", async () => {
    await vite({ root: consumer.folder, base: "./", logLevel: "error", configFile: false, build: { outDir: "vite" } });
    expect(await answerOf(browser, `${server.address}vite/index.html`)).toBe("3.00000");
    expect(nodeModulesIn(join(consumer.folder, "vite"))).toEqual([]);
  });

  test("webpack", async () => {
    const stats = await new Promise<webpack.Stats | undefined>((resolve, reject) => {
      webpack(
        {
          mode: "production",
          context: consumer.folder,
          entry: "./main.js",
          output: { path: join(consumer.folder, "webpack"), filename: "main.js" },
        },
        (error, result) => (error ? reject(error) : resolve(result)),
      );
    });
    expect(stats?.toJson({ all: false, errors: true, warnings: true })).toMatchObject({ errors: [], warnings: [] });
    expect(nodeModulesIn(join(consumer.folder, "webpack"))).toEqual([]);
    writeFileSync(join(consumer.folder, "webpack/index.html"), page("./main.js"));
    expect(await answerOf(browser, `${server.address}webpack/index.html`)).toBe("3.00000");
  });

  test("esbuild, with the binaries copied beside the bundle", async () => {
    // esbuild leaves new URL(..., import.meta.url) as it is, so the files have to lie where the bundle lies.
    const outdir = join(consumer.folder, "esbuild");
    const { warnings } = await esbuild({
      entryPoints: [join(consumer.folder, "main.js")],
      bundle: true,
      format: "esm",
      outdir,
      logLevel: "silent",
    });
    expect(warnings).toEqual([]);
    const dist = join(consumer.folder, "node_modules/attention-wasm/dist");
    for (const file of readdirSync(dist).filter((name) => name.endsWith(".wasm"))) cpSync(join(dist, file), join(outdir, file));
    writeFileSync(join(outdir, "index.html"), page("./main.js"));
    expect(await answerOf(browser, `${server.address}esbuild/index.html`)).toBe("3.00000");
    expect(nodeModulesIn(outdir)).toEqual([]);
  });

  test("esbuild, attention-wasm/inline in one file", async () => {
    const outfile = join(consumer.folder, "inline/main.js");
    mkdirSync(join(consumer.folder, "inline"));
    writeFileSync(join(consumer.folder, "inline.js"), entry.replace('"attention-wasm"', '"attention-wasm/inline"'));
    await esbuild({ entryPoints: [join(consumer.folder, "inline.js")], bundle: true, format: "iife", outfile, logLevel: "silent" });
    writeFileSync(join(consumer.folder, "inline/index.html"), page("./main.js"));
    expect(await answerOf(browser, `${server.address}inline/index.html`)).toBe("3.00000");
  });
});
