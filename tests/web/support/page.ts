/** The page in a real Chromium, and how a reader uses it: type, point, press keys, read. */
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Cell } from "../../../web/state";

/** Path of Chromium, or undefined. $CHROMIUM first, then PATH. */
export const chromiumPath = findChromium();

function findChromium(): string | undefined {
  if (process.env["CHROMIUM"]) return process.env["CHROMIUM"];
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // not under this name
    }
  }
  return undefined;
}

if (chromiumPath === undefined) {
  console.warn("The page is not tested: there is no Chromium. Put one on PATH or name it in CHROMIUM.");
}

export function launch(): Promise<Browser> {
  // Without a sandbox, because tests also run as root, where Chromium refuses to have one.
  return chromium.launch({ executablePath: chromiumPath as string, args: ["--no-sandbox"] });
}

/** The numbers behind "Save all numbers (JSON)". */
export interface SavedRun {
  readonly tokens: readonly { readonly text: string }[];
  readonly numHeads: number;
  readonly causal: boolean;
  readonly stages: Record<string, { readonly shape: number[]; readonly data: (number | null)[] }>;
}

export class DemoPage {
  readonly page: Page;
  /** Errors of the page itself and of its console. */
  readonly errors: string[] = [];
  /** Every address that was asked for. */
  readonly requests: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.errors.push(message.text());
    });
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("request", (request) => this.requests.push(request.url()));
  }

  /** Opens the address in a fresh profile; returns when the recorded example is there, which may be before the library is. */
  static async open(browser: Browser, address: string, options: BrowserContextOptions = {}): Promise<DemoPage> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const demo = new DemoPage(await context.newPage());
    await demo.page.goto(address, { waitUntil: "domcontentloaded" });
    return demo;
  }

  /** Waits until the page computes by itself. */
  async live(): Promise<this> {
    await this.page.waitForSelector("html[data-live=yes]");
    return this;
  }

  close(): Promise<void> {
    return this.page.context().close();
  }

  async type(sentence: string): Promise<void> {
    await this.page.fill("#sentence", sentence);
  }

  async text(selector: string): Promise<string> {
    return (await this.page.locator(selector).textContent()) ?? "";
  }

  status(): Promise<string | undefined> {
    return this.page.locator("#status").evaluate((element) => (element as HTMLElement).dataset["state"]);
  }

  /** The bubble beside the cell pointed at. */
  tip(): Promise<string> {
    return this.text("#matrix .tip");
  }

  /** Moves the mouse to a place in the matrix's picture, given in shares of its width and height. */
  async hover(x: number, y: number): Promise<void> {
    const canvas = this.page.locator("#matrix .overlay");
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    if (!box) throw new Error("the matrix is not drawn");
    await this.page.mouse.move(box.x + x * box.width, box.y + y * box.height);
  }

  /** Walks to a cell by keyboard: to the first one, then right and down. */
  async walkTo({ row, column }: Cell): Promise<void> {
    await this.page.locator("#matrix .overlay").focus();
    await this.page.keyboard.press("PageUp");
    await this.page.keyboard.press("Home");
    for (let i = 0; i < row; i++) await this.page.keyboard.press("ArrowDown");
    for (let i = 0; i < column; i++) await this.page.keyboard.press("ArrowRight");
  }

  /** What the page computed, by its own way out. */
  async saved(): Promise<SavedRun> {
    const download = this.page.waitForEvent("download");
    await this.page.click("#save-json");
    return JSON.parse(await readFile(await (await download).path(), "utf8"));
  }

  scrolledSideways(): Promise<boolean> {
    return this.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  }
}

/** "“a” → “b”  0.1234" in parts. */
export function readTip(tip: string): { query: string; key: string; value: number } {
  const match = /^“(.+)” → “(.+)”\s+([−\d.e]+)$/.exec(tip);
  if (!match) throw new Error(`not the sentence about a weight: ${tip}`);
  return { query: match[1] as string, key: match[2] as string, value: Number((match[3] as string).replaceAll("−", "-")) };
}
