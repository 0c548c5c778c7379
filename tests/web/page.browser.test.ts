/** The page computes, shows and lets itself be used. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { largestDifference } from "../../web/examples/matrix.mjs";
import recorded from "../../web/examples/recorded.json" with { type: "json" };
import { expectedRun } from "./support/expected";
import { chromiumPath, DemoPage, launch, readTip } from "./support/page";
import { StaticServer } from "./support/static-server";

const kTolerance = 2e-6;
const kShown = 5.1e-5; // four decimals
const kAll = [0, 1, 2, 3];
// No word twice, so that a word says which row or column is meant.
const kSentence = "the animal did not cross a street because it was too tired";

describe.skipIf(chromiumPath === undefined)("the page", () => {
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
    expect(demo.errors).toEqual([]);
    await demo.close();
  });

  const open = async (hash = "", options = {}) => {
    demo = await DemoPage.open(browser, server.address + hash, options);
    await demo.live();
  };

  test.each([
    { numHeads: 1, causal: false },
    { numHeads: 4, causal: false },
    { numHeads: 4, causal: true },
    { numHeads: 8, causal: true },
  ])("computes a typed sentence as float64 does: %o", async ({ numHeads, causal }) => {
    await open();
    await demo.page.check(`#head-counts input[value="${numHeads}"]`, { force: true });
    await demo.page.setChecked("#causal", causal);
    await demo.type(kSentence);
    const saved = await demo.saved();
    const expected = expectedRun(kSentence, { numHeads, causal });
    expect(saved.tokens.map((token) => token.text)).toEqual(expected.words);
    expect(saved.stages["weights"]?.shape).toEqual([numHeads, 12, 12]);
    expect(largestDifference(saved.stages["weights"]?.data as number[], expected.weights)).toBeLessThan(kTolerance);
    expect(largestDifference(saved.stages["output"]?.data as number[], expected.output)).toBeLessThan(kTolerance);
    // Minus infinity cannot stand in JSON.
    const hidden = saved.stages["maskedScores"]?.data.filter((score) => score === null).length;
    expect(hidden).toBe(causal ? (numHeads * 12 * 11) / 2 : 0);
  });

  test("shows the exact value under the mouse, and does not scroll", async () => {
    await open();
    await demo.type(kSentence);
    const { words, mean } = expectedRun(kSentence);
    const seen = new Set<string>();
    await demo.hover(0.5, 0.5);
    const scrolled = await demo.page.evaluate(() => window.scrollY);
    for (const x of [0.25, 0.4, 0.6, 0.75]) {
      for (const y of [0.35, 0.5, 0.65]) {
        await demo.hover(x, y);
        const { query, key, value } = readTip(await demo.tip());
        seen.add(`${query} ${key}`);
        expect(Math.abs(value - mean(kAll, words.indexOf(query), words.indexOf(key)))).toBeLessThan(kShown);
      }
    }
    expect(seen.size).toBe(12);
    expect(await demo.page.evaluate(() => window.scrollY)).toBe(scrolled);
  });

  test("the cell said is the cell drawn under the mouse", async () => {
    await open();
    await demo.type(kSentence);
    // Head 1 looks at the word before: one dark cell in each row, at a place that is known.
    await demo.page.selectOption("#show", "0");
    const { words } = expectedRun(kSentence);
    const heights = [0.4, 0.55, 0.7];
    // All rows in one reading: Chromium warns of a second one.
    const places = await demo.page
      .locator("#matrix canvas")
      .first()
      .evaluate((element, shares) => {
        const { width, height } = element as HTMLCanvasElement;
        const bytes = (element as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? [];
        return shares.map((share) => {
          const start = Math.round(share * height) * width * 4;
          // Dark blue and not grey: writing is grey. Off the middle of the cell, where its number stands.
          const isDark = (i: number) => bytes[start + i * 4] < 40 && bytes[start + i * 4 + 2] - bytes[start + i * 4] > 60;
          return (Array.from({ length: width }, (_, i) => i).findIndex(isDark) + 6) / width;
        });
      }, heights);
    for (const [i, x] of places.entries()) {
      await demo.hover(x, heights[i]);
      const { query, key, value } = readTip(await demo.tip());
      expect(key).toBe(words[words.indexOf(query) - 1]);
      expect(value).toBeGreaterThan(0.8);
    }
  });

  test("links the cell under the mouse with its row and its number in the text", async () => {
    await open();
    await demo.type(kSentence);
    await demo.hover(0.6, 0.5);
    const { query, key } = readTip(await demo.tip());
    // The rest of the page follows with the next frame.
    await demo.page.waitForFunction((word) => document.querySelector(".strip [aria-pressed=true]")?.textContent === word, query);
    const readout = await demo.text("#readout");
    expect(readout).toContain(`“${query}” looks at “${key}”`);
    expect(readout).toMatch(/Row sum\s*1\.00000\d/);
    expect(readout).toMatch(/Entropy\s*[\d.]+ of 3\.58 bits/);
    expect(readout).toMatch(/Largest weight\s*0\.\d+ at “/);
  });

  test("is used by keyboard: arrow keys move from cell to cell and the page stays where it is", async () => {
    await open();
    await demo.type(kSentence);
    const { words, mean } = expectedRun(kSentence);
    await demo.page.locator("#matrix .overlay").focus();
    const scrolled = await demo.page.evaluate(() => window.scrollY);
    for (const cell of [
      { row: 0, column: 0 },
      { row: 3, column: 7 },
      { row: 11, column: 2 },
    ]) {
      await demo.walkTo(cell);
      const { query, key, value } = readTip(await demo.tip());
      expect([query, key]).toEqual([words[cell.row], words[cell.column]]);
      expect(Math.abs(value - mean(kAll, cell.row, cell.column))).toBeLessThan(kShown);
    }
    await demo.page.keyboard.press("End");
    await demo.page.keyboard.press("ArrowRight"); // there is nothing further right
    expect(readTip(await demo.tip()).key).toBe(words.at(-1));
    expect(await demo.page.evaluate(() => window.scrollY)).toBe(scrolled);
    await demo.page.keyboard.press("Escape");
    expect(await demo.page.locator("#matrix .tip").isVisible()).toBe(false);
  });

  test("shows a value on touch", async () => {
    await open("", { hasTouch: true, viewport: { width: 360, height: 740 } });
    const canvas = demo.page.locator("#matrix .overlay");
    await canvas.scrollIntoViewIfNeeded();
    await canvas.tap({ position: { x: 200, y: 200 } });
    expect(readTip(await demo.tip()).value).toBeGreaterThan(0);
  });

  test("reaches every control with the Tab key", async () => {
    await open();
    const reached = new Set<string>();
    const wanted = ["sentence", "show", "causal", "log", "theme", "copy-link", "copy-csv", "save-json", "save-png"];
    for (let i = 0; i < 80; i++) {
      await demo.page.keyboard.press("Tab");
      reached.add(await demo.page.evaluate(() => document.activeElement?.id ?? ""));
    }
    expect(wanted.filter((id) => !reached.has(id))).toEqual([]);
  });

  test("shows one head, the mean of some, and one alone by double click", async () => {
    await open();
    await demo.type(kSentence);
    const expected = expectedRun(kSentence);
    const shownAt = async (row: number, column: number) => {
      await demo.walkTo({ row, column });
      return readTip(await demo.tip()).value;
    };
    const expectHeads = async (heads: readonly number[]) => {
      expect(Math.abs((await shownAt(4, 3)) - expected.mean(heads, 4, 3))).toBeLessThan(kShown);
      const pressed = await demo.page
        .locator("#heads button")
        .evaluateAll((all) => all.map((button) => button.getAttribute("aria-pressed") === "true"));
      expect(pressed).toEqual(kAll.map((head) => heads.includes(head)));
    };
    await expectHeads(kAll);
    await demo.page.selectOption("#show", "1");
    await expectHeads([1]);
    await demo.page.locator("#heads button").nth(3).click();
    await expectHeads([1, 3]);
    expect(await demo.page.locator("#show option:checked").textContent()).toBe("mean of heads 2, 4");
    await demo.page.locator("#heads button").nth(0).dblclick();
    await expectHeads([0]);
    // The steps are those of the head, and say so.
    expect(await demo.text('[data-stage="query"] .shape')).toBe("[4, 12, 32], head 1 of 4");
    await demo.page.locator("#heads button").nth(0).click(); // without any head there is no picture
    await expectHeads(kAll);
  });

  test("causal hides what comes later, and hidden is not 0", async () => {
    await open();
    await demo.type(kSentence);
    await demo.page.check("#causal");
    await demo.walkTo({ row: 2, column: 9 });
    expect(await demo.tip()).toBe("“was” is hidden from “did”");
    await demo.page.waitForFunction(() => document.querySelector("#readout .number")?.textContent === "hidden");
    const { mean } = expectedRun(kSentence, { causal: true });
    await demo.walkTo({ row: 9, column: 2 });
    expect(Math.abs(readTip(await demo.tip()).value - mean(kAll, 9, 2))).toBeLessThan(kShown);
    await demo.page.waitForFunction(() => document.querySelectorAll("#strip .hidden-key").length === 2);
    expect(await demo.page.locator("#strip .hidden-key").allInnerTexts()).toEqual(["too", "tired"]);
    await demo.page.uncheck("#causal");
    expect(await demo.page.locator("#strip .hidden-key").count()).toBe(0);
  });

  test("the logarithmic scale changes colours and no number", async () => {
    await open();
    await demo.walkTo({ row: 1, column: 5 });
    const number = await demo.tip();
    const picture = () =>
      demo.page
        .locator("#matrix canvas")
        .first()
        .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
    const before = await picture();
    await demo.page.check("#log");
    await demo.walkTo({ row: 1, column: 5 });
    expect(await demo.tip()).toBe(number);
    expect(await picture()).not.toBe(before);
  });

  test("shows all stages with shape, hint and the numbers of the chosen word", async () => {
    await open();
    const stages = await demo.page
      .locator("[data-stage]")
      .evaluateAll((all) => all.map((figure) => (figure as HTMLElement).dataset["stage"]));
    expect(stages).toEqual(Object.keys(recorded.stages));
    const saved = await demo.saved();
    await demo.walkTo({ row: 4, column: 1 });
    for (const stage of stages) {
      const figure = demo.page.locator(`[data-stage="${stage}"]`);
      expect((await figure.locator("figcaption p").textContent())?.length).toBeGreaterThan(20);
      expect(await figure.locator(".shape").textContent()).toContain(`[${saved.stages[stage as string]?.shape.join(", ")}]`);
    }
    await demo.page.click('[data-stage="output"] summary');
    const first = Number(saved.stages["output"]?.data[4 * 128])
      .toFixed(4)
      .replace("-", "−");
    await demo.page.waitForFunction(
      (number) => document.querySelector('[data-stage="output"] .values')?.textContent?.startsWith(`${number} `),
      first,
    );
  });

  test("names the words that it does not know and what it does about them", async () => {
    await open();
    await demo.type("a zorgblatt can't swim");
    const words = await demo.text("#words");
    expect(words).toContain("“a” is looked up as “an”");
    expect(words).toContain("“n't” is looked up as “not”");
    expect(words).toContain("Unknown: “zorgblatt”");
  });

  test("says in a sentence what is wrong with the input, and goes on with the next one", async () => {
    await open();
    await demo.type("");
    expect(await demo.text("#message")).toContain("There is no word in the sentence");
    await demo.type(`${"word ".repeat(257)}`);
    expect(await demo.text("#message")).toContain("257 words and signs; at most 256");
    await demo.type("cats and dogs");
    expect(await demo.page.locator("#message").isVisible()).toBe(false);
    expect(await demo.page.locator("#strip button").allInnerTexts()).toEqual(["cats", "and", "dogs"]);
  });

  test("the address restores what was seen", async () => {
    await open();
    await demo.type(kSentence);
    await demo.page.check("#causal");
    await demo.page.selectOption("#show", "2");
    await demo.walkTo({ row: 6, column: 4 });
    await demo.page.waitForFunction(
      () => document.querySelector("#readout .key")?.textContent === "“cross”" && location.hash.includes("at=7%2C5"),
    );
    const [readout, words] = [await demo.text("#readout"), await demo.text("#strip")];
    const address = demo.page.url();
    await demo.close();
    await open(address.slice(server.address.length));
    expect(await demo.text("#readout")).toBe(readout);
    expect(await demo.text("#strip")).toBe(words);
    // A mistyped address opens too.
    await demo.close();
    await open("#heads=3&show=9,x&at=-1&s=cats");
    expect(await demo.text("#strip")).toBe("cats");
  });

  test("256 words stay fluid: pointing at a hundred cells takes no longer than people notice", async () => {
    await open();
    await demo.type(`${"cats like dogs ".repeat(85)}now`);
    await demo.page.waitForFunction(() => document.querySelectorAll("#strip button").length === 256);
    const canvas = demo.page.locator("#matrix .overlay");
    await canvas.scrollIntoViewIfNeeded();
    const milliseconds = await canvas.evaluate((element) => {
      const box = element.getBoundingClientRect();
      const started = performance.now();
      for (let i = 0; i < 100; i++) {
        const [clientX, clientY] = [box.left + box.width * (0.3 + i * 0.004), box.top + box.height * (0.3 + i * 0.004)];
        element.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, pointerType: "mouse" }));
      }
      return performance.now() - started;
    });
    // Far above what it takes, far below one redraw of the picture per cell.
    expect(milliseconds).toBeLessThan(1000);
    expect(readTip(await demo.tip()).value).toBeGreaterThanOrEqual(0);
  });

  test("the recorded example is what the library computes today", async () => {
    await open();
    const saved = await demo.saved();
    for (const [name, { shape, base64 }] of Object.entries(recorded.stages)) {
      const bytes = Uint8Array.from(Buffer.from(base64, "base64"));
      expect(saved.stages[name]?.shape).toEqual(shape);
      const largest = Math.max(1, ...new Float32Array(bytes.buffer).map(Math.abs));
      expect(largestDifference(saved.stages[name]?.data as number[], new Float32Array(bytes.buffer)) / largest).toBeLessThan(kTolerance);
    }
  });
});
