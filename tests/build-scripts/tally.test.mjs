import assert from "node:assert/strict";
import { test } from "node:test";
import { sum, tally, tallyOfCatch2, tallyOfNodeTest, tallyOfVitest } from "../../build-scripts/lib/tally.mjs";

test("Catch2, all passed", () => {
  assert.deepEqual(tallyOfCatch2("====\nAll tests passed (1234 assertions in 56 test cases)\n"), tally(56, 0, 0));
  assert.deepEqual(tallyOfCatch2("All tests passed (1 assertion in 1 test case)\n"), tally(1, 0, 0));
});

test("Catch2, mixed", () => {
  assert.deepEqual(tallyOfCatch2("test cases: 6 | 3 passed | 2 failed | 1 skipped\nassertions: 9 | 8 passed | 1 failed\n"), tally(3, 2, 1));
});

test("Catch2, in colours", () => {
  assert.deepEqual(tallyOfCatch2("\u001b[1;32mAll tests passed\u001b[0m (12 assertions in 3 test cases)\n"), tally(3, 0, 0));
  assert.deepEqual(tallyOfCatch2("test cases: 6 | \u001b[32m4 passed\u001b[0m | \u001b[31m2 failed\u001b[0m\n"), tally(4, 2, 0));
});

test("Catch2, nothing printed", () => {
  assert.deepEqual(tallyOfCatch2("Segmentation fault"), tally(0, 0, 0));
});

test("vitest counts a file that cannot be loaded as a failure", () => {
  const report = {
    numPassedTests: 3,
    numFailedTests: 0,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults: [{ status: "failed", assertionResults: [] }],
  };
  assert.deepEqual(tallyOfVitest(report), tally(3, 1, 1));
});

test("node --test", () => {
  assert.deepEqual(tallyOfNodeTest("ℹ tests 4\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n"), tally(2, 1, 1));
});

test("sums", () => {
  assert.deepEqual(sum([tally(1, 2, 3), tally(4, 0, 1)]), tally(5, 2, 4));
});
