import assert from "node:assert/strict";
import { test } from "node:test";
import { editNodeGlue } from "../../build-scripts/lib/glue.mjs";

test("an unknown glue stops the build with a sentence that shows what was expected", () => {
  assert.throws(() => editNodeGlue("function of_another_version(){}"), /expected to hold this once and holds it 0 times/);
});
