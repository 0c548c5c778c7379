/**
 * Runs each contestant in a tab of its own in Chromium, on a page that is cross-origin isolated, as threads and fine clocks need it.
 * The package is served from where it is installed, peers from their folder, both under the names that the import map gives them.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const kTypes = {
  ".mjs": "text/javascript",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
  ".html": "text/html",
  ".json": "application/json",
};
const kHeaders = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cache-control": "no-store",
};
const kPage = `<!doctype html><title>bench</title><script type="importmap">${JSON.stringify({
  imports: {
    "@litertjs/core": "/peers/@litertjs/core/dist/index.js",
    "@litertjs/wasm-utils": "/peers/@litertjs/wasm-utils/dist/index.js",
  },
})}</script><script type="module">
import { makeParticipant } from "/bench/js/participant.mjs";
import { browserHost } from "/bench/peers/browser-host.mjs";
globalThis.act = makeParticipant((file) => import(new URL(file, location.origin + "/bench/js/")), browserHost);
</script>`;

export async function browserStage({ executablePath, packageFolder, peersFolder }) {
  const folders = { "/bench/": fileURLToPath(new URL("../", import.meta.url)), "/package/": packageFolder };
  if (peersFolder) folders["/peers/"] = join(peersFolder, "node_modules");
  const server = createServer((request, response) => void serve(folders, request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({
    executablePath,
    // As root there is no sandbox; tabs that wait their turn must not be slowed down when it comes.
    args: [
      "--no-sandbox",
      "--disable-background-timer-throttling",
      "--disable-renderer-backgrounding",
      "--disable-backgrounding-occluded-windows",
    ],
  });
  let tabs = 0;
  return {
    name: `Chromium ${browser.version()}`,
    flags: "",
    async enter() {
      const context = await browser.newContext(); // of its own, so that no two tabs share a process
      const page = await context.newPage();
      await page.goto(`http://tab${++tabs}.localhost:${server.address().port}/`);
      await page.waitForFunction(() => globalThis.act !== undefined);
      return {
        ask: (message) =>
          page.evaluate((m) => globalThis.act(m), message).catch((error) => ({ error: String(error.message).split("\n")[0] })),
        leave: () => context.close(),
      };
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function serve(folders, request, response) {
  const path = new URL(request.url, "http://localhost").pathname;
  if (path === "/") return void response.writeHead(200, { ...kHeaders, "content-type": "text/html" }).end(kPage);
  const base = Object.keys(folders).find((prefix) => path.startsWith(prefix));
  try {
    const file = join(folders[base], normalize(decodeURIComponent(path.slice(base.length))));
    const body = await readFile(file);
    response.writeHead(200, { ...kHeaders, "content-type": kTypes[extname(file)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404, kHeaders).end();
  }
}
