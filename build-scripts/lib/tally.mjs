/** Counts of tests, as the runners report them. */
import { stripVTControlCharacters } from "node:util";

export function tally(passed = 0, failed = 0, skipped = 0) {
  return { passed, failed, skipped };
}

/** Catch2's closing line: "All tests passed (12 assertions in 3 test cases)" or "test cases: 3 | 1 passed | 1 failed | 1 skipped".
 * With colours where Catch2 takes its output for a terminal, as it does under Emscripten in some environments. */
export function tallyOfCatch2(coloured) {
  const output = stripVTControlCharacters(coloured);
  const all = /^All tests passed \(.* in (\d+) test cases?\)/m.exec(output);
  if (all) return tally(Number(all[1]));
  const line = /^test cases:.*$/m.exec(output)?.[0] ?? "";
  const count = (word) => Number(new RegExp(`(\\d+) ${word}`).exec(line)?.[1] ?? 0);
  // "failed as expected" counts as passed for Catch2's exit code, too.
  return tally(count("passed") + count("failed as expected"), count("failed(?! as)"), count("skipped"));
}

/** Vitest's JSON report. */
export function tallyOfVitest(report) {
  // A file that cannot be loaded has no tests, only a failed suite.
  const brokenFiles = (report.testResults ?? []).filter((file) => file.status === "failed" && file.assertionResults.length === 0).length;
  return tally(report.numPassedTests, report.numFailedTests + brokenFiles, (report.numPendingTests ?? 0) + (report.numTodoTests ?? 0));
}

/** The summary of node --test: "ℹ pass 12" or "# pass 12". */
export function tallyOfNodeTest(coloured) {
  const output = stripVTControlCharacters(coloured);
  const count = (word) => Number(new RegExp(`^. ${word} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
  return tally(count("pass"), count("fail") + count("cancelled"), count("skipped") + count("todo"));
}

export function sum(tallies) {
  return tallies.reduce((a, b) => tally(a.passed + b.passed, a.failed + b.failed, a.skipped + b.skipped), tally());
}
