/** Runs the stages of a test run one after the other, and closes with a table and one line of totals. */
import { performance } from "node:perf_hooks";
import { Problem } from "./problem.mjs";
import { sum, tally } from "./tally.mjs";

/** Thrown by a stage that cannot run here; its message says why. */
export class Skipped extends Error {}

/**
 * @param {{ name: string, run: () => Promise<{ passed: number, failed: number, skipped: number }> }[]} stages
 * @returns {Promise<number>} exit code
 */
export async function runStages(stages) {
  const results = [];
  for (const { name, run } of stages) {
    console.log(`\n── ${name} ${"─".repeat(Math.max(3, 90 - name.length))}`);
    const start = performance.now();
    const result = await attempt(run);
    results.push({ name, seconds: (performance.now() - start) / 1000, ...result });
  }
  return close(results);
}

async function attempt(run) {
  try {
    const counts = await run();
    return { counts, note: counts.failed > 0 ? "FAILED" : counts.skipped > 0 ? "has skipped tests" : "ok" };
  } catch (error) {
    if (error instanceof Skipped) {
      console.log(`skipped: ${error.message}`);
      return { counts: tally(0, 0, 1), note: `SKIPPED: ${error.message}` };
    }
    if (error instanceof Problem && error.detail) console.log(error.detail);
    console.log(error instanceof Problem ? error.message : error.stack);
    return { counts: tally(0, 1, 0), note: "FAILED" };
  }
}

function close(results) {
  const width = Math.max(...results.map(({ name }) => name.length));
  console.log(`\n── summary ${"─".repeat(83)}`);
  for (const { name, seconds, counts, note } of results) {
    const columns = [
      name.padEnd(width),
      `${seconds.toFixed(1)} s`.padStart(9),
      `${counts.passed} passed`.padStart(12),
      `${counts.failed} failed`.padStart(10),
      `${counts.skipped} skipped`.padStart(10),
      note,
    ];
    console.log(columns.join("  "));
  }
  const total = sum(results.map(({ counts }) => counts));
  // On a machine of our own a missing browser is no fault; in CI it would hide one.
  const skippedCounts = process.env.CI && total.skipped > 0;
  if (skippedCounts) console.log("\nUnder CI a skipped test counts as a failure.");
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed > 0 || skippedCounts || total.passed === 0 ? 1 : 0;
}
