import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { syncFolder } from "../../build-scripts/lib/files.mjs";
import { withLock } from "../../build-scripts/lib/lock.mjs";
import { hashOf, stampMatches, writeStamp } from "../../build-scripts/lib/stamp.mjs";

function scratch(t) {
  const folder = mkdtempSync(join(tmpdir(), "stamp-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a stamp matches only its own value", (t) => {
  const file = join(scratch(t), "deep/stamp");
  assert.equal(stampMatches(file, "a"), false);
  writeStamp(file, "a");
  assert.equal(stampMatches(file, "a"), true);
  assert.equal(stampMatches(file, "b"), false);
});

test("a hash changes with a content, a name, an added file, and the salt", (t) => {
  const folder = scratch(t);
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src/a"), "1");
  const hashes = [hashOf(folder, ["src"]), hashOf(folder, ["src"], "salt")];
  writeFileSync(join(folder, "src/a"), "2");
  hashes.push(hashOf(folder, ["src"]));
  writeFileSync(join(folder, "src/b"), "");
  hashes.push(hashOf(folder, ["src"]));
  rmSync(join(folder, "src/b"));
  writeFileSync(join(folder, "src/c"), "");
  hashes.push(hashOf(folder, ["src"]));
  assert.equal(new Set(hashes).size, hashes.length);
  assert.equal(hashOf(folder, ["src", "missing"]), hashes[4], "a missing file counts as empty");
});

test("a synced folder holds exactly the files, and leaves equal ones untouched", (t) => {
  const folder = join(scratch(t), "dist");
  syncFolder(
    folder,
    new Map([
      ["a", "1"],
      ["old", "x"],
    ]),
  );
  const before = statSync(join(folder, "a")).mtimeMs;
  syncFolder(
    folder,
    new Map([
      ["a", Buffer.from("1")],
      ["b", "2"],
    ]),
  );
  assert.equal(statSync(join(folder, "a")).mtimeMs, before);
  assert.equal(readFileSync(join(folder, "b"), "utf8"), "2");
  assert.equal(existsSync(join(folder, "old")), false);
});

test("a lock is exclusive, is released after a failure, and a dead owner's is taken over", async (t) => {
  const file = join(scratch(t), "lock");
  let inside = 0;
  let most = 0;
  const work = async () => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inside--;
  };
  await Promise.all([withLock(file, work), withLock(file, work)]);
  assert.equal(most, 1);

  await assert.rejects(
    withLock(file, async () => Promise.reject(new Error("no"))),
    /no/,
  );
  assert.equal(existsSync(file), false);

  const { hostname } = await import("node:os");
  writeFileSync(file, `${hostname()} 4194305`); // above the largest process id of Linux
  await withLock(file, work);
  assert.equal(existsSync(file), false);
});
