/** Whatever does not arrive: a sentence says so, the recorded example stays, and trying again needs no reload. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, DemoPage, launch, readTip } from "./support/page";
import { StaticServer } from "./support/static-server";

describe.skipIf(chromiumPath === undefined)("the page when something is missing", () => {
  let server: StaticServer;
  let browser: Browser;
  let demo: DemoPage;

  beforeAll(async () => {
    server = await StaticServer.start();
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  afterEach(async () => {
    server.trouble = undefined;
    await demo.close();
  });

  test.each([
    { kind: "missing", path: /\.wasm$/, sentence: /^The WebAssembly module could not be loaded: .*\.wasm/s },
    { kind: "html", path: /\.wasm$/, sentence: /^The WebAssembly module could not be loaded: .*\.wasm.*HTML/is },
    { kind: "missing", path: /\.bin$/, sentence: /^The word vectors could not be loaded: the server answers 404 for words-100d/ },
    { kind: "html", path: /\.txt$/, sentence: /^The word vectors could not be loaded: the server sends a web page in place of words-100d/ },
  ] as const)("$kind in place of $path is a sentence on the page, and can be tried again", async ({ kind, path, sentence }) => {
    server.trouble = { kind, path };
    demo = await DemoPage.open(browser, server.address);
    await demo.page.waitForSelector("#status[data-state=failed]");
    expect(await demo.text("#status-text")).toMatch(sentence);
    expect(await demo.text("#status-text")).toContain("What you see is the recorded example.");

    // The recorded example can be read and pointed at.
    await demo.walkTo({ row: 11, column: 10 });
    expect(readTip(await demo.tip())).toMatchObject({ query: "tired", key: "too" });

    server.trouble = undefined;
    await demo.page.click("#retry");
    await demo.live();
    expect(await demo.status()).toBe("ready");
    await demo.type("cats and dogs");
    expect(await demo.page.locator("#strip button").count()).toBe(3);
  });

  test("while nothing has arrived yet, the recorded example is there and progress is shown", async () => {
    server.trouble = { kind: "never", path: /\.wasm$|\.bin$/ };
    demo = await DemoPage.open(browser, server.address);
    // No waiting: scripts of modules have run when the document is ready.
    expect(await demo.page.locator("#readout .number").count()).toBe(1);
    expect(await demo.status()).toBe("loading");
    expect(await demo.text("#status-text")).toContain("recorded example");
    expect(await demo.page.locator("#progress").isVisible()).toBe(true);
    await demo.walkTo({ row: 11, column: 10 });
    expect(readTip(await demo.tip()).value).toBeGreaterThan(0.1);
  });
});
