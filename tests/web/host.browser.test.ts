/** The page on a plain static host: any path, any width, light and dark, and nothing from anywhere else. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, DemoPage, launch, readTip } from "./support/page";
import { StaticServer } from "./support/static-server";

describe.skipIf(chromiumPath === undefined)("the page on a static host", () => {
  let server: StaticServer;
  let browser: Browser;
  let demo: DemoPage;

  beforeAll(async () => {
    server = await StaticServer.start("/some/path/");
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  afterEach(() => demo.close());

  test("works below a path, asks no other server, and has nothing to complain about", async () => {
    demo = await (await DemoPage.open(browser, server.address)).live();
    await demo.type("cats and dogs");
    await demo.walkTo({ row: 0, column: 2 });
    expect(readTip(await demo.tip()).key).toBe("dogs");
    await demo.saved();
    expect(demo.requests.filter((url) => !url.startsWith(server.address) && !url.startsWith("data:") && !url.startsWith("blob:"))).toEqual(
      [],
    );
    expect(demo.errors).toEqual([]);
  });

  test("holds the browser to that: no other server, no code from strings", async () => {
    demo = await (await DemoPage.open(browser, server.address)).live();
    const policy = await demo.page.getAttribute("meta[http-equiv=Content-Security-Policy]", "content");
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe-eval' ");
    expect(policy).not.toMatch(/'unsafe-(eval|inline)'|https?:|\*/);
  });

  test.each([
    { width: 360, colorScheme: "light" },
    { width: 360, colorScheme: "dark" },
    { width: 768, colorScheme: "light" },
    { width: 1280, colorScheme: "dark" },
  ] as const)("fits $width px in $colorScheme without scrolling sideways", async ({ width, colorScheme }) => {
    demo = await (await DemoPage.open(browser, server.address, { viewport: { width, height: 800 }, colorScheme })).live();
    for (const sentence of [
      "cats",
      "the animal did not cross the street because it was too tired",
      "antidisestablishmentarianism ".repeat(40),
    ]) {
      await demo.type(sentence);
      expect(await demo.scrolledSideways()).toBe(false);
      await demo.walkTo({ row: 0, column: 0 });
      expect(await demo.scrolledSideways()).toBe(false); // with the bubble out
    }
    const outside = await demo.page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, canvas")]
        .filter((element) => !element.closest(".samples")) // these are pushed sideways, in a line of their own
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
        .map((element) => element.id || element.className),
    );
    expect(outside).toEqual([]);
  });

  test("light and dark follow the system until one is chosen, and the choice lasts", async () => {
    demo = await (await DemoPage.open(browser, server.address, { colorScheme: "dark" })).live();
    const paper = () => demo.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await paper();
    await demo.page.click("#theme"); // auto → light
    const light = await paper();
    expect(light).not.toBe(dark);
    await demo.page.reload();
    await demo.live();
    expect(await paper()).toBe(light);
    await demo.page.click("#theme"); // light → dark
    expect(await paper()).toBe(dark);
  });
});
