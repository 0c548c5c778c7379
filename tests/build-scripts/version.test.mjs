import assert from "node:assert/strict";
import { test } from "node:test";
import { compareVersions, isAtLeast, parseVersion } from "../../build-scripts/lib/version.mjs";

test("a version is found in what tools print", () => {
  assert.deepEqual(parseVersion("emcc (Emscripten gcc/clang-like replacement) 3.1.69 (abcdef)"), [3, 1, 69]);
  assert.deepEqual(parseVersion('"3.1.69"'), [3, 1, 69]);
  assert.deepEqual(parseVersion("3.1.69+dfsg-3"), [3, 1, 69]);
  assert.deepEqual(parseVersion("v20.20.2"), [20, 20, 2]);
  assert.equal(parseVersion("none"), undefined);
});

test("numbers are compared, not texts", () => {
  assert.ok(compareVersions("3.1.69", "3.1.7") > 0);
  assert.ok(compareVersions("3.1.6", "3.1.69") < 0);
  assert.ok(compareVersions("4.0.0", "3.1.69") > 0);
  assert.equal(compareVersions("3.25", "3.25.0"), 0);
});

test("no version is never enough", () => {
  assert.equal(isAtLeast("3.1.69", "3.1.69"), true);
  assert.equal(isAtLeast("3.1.6", "3.1.69"), false);
  assert.equal(isAtLeast("", "3.1.69"), false);
  assert.equal(isAtLeast(undefined, "3.1.69"), false);
});
