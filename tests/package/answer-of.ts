/** What a test page has written into #answer, with the errors of the page behind it. */
import type { Browser } from "playwright-core";

export async function answerOf(browser: Browser, address: string): Promise<string> {
  const tab = await browser.newPage();
  const problems: string[] = [];
  tab.on("pageerror", (error) => problems.push(String(error)));
  try {
    await tab.goto(address);
    await tab.waitForFunction(() => document.getElementById("answer")?.textContent !== "", undefined, { timeout: 20_000 });
    return [(await tab.textContent("#answer")) ?? "", ...problems].join("; ");
  } finally {
    await tab.close();
  }
}
