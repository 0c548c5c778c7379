/**
 * Stamps: a small file, written last and atomically, that says what a folder was made from. Existence proves nothing
 * after an interrupted run, an equal stamp does.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { readIfThere } from "./run.mjs";

export function stampMatches(file, value) {
  return readIfThere(file) === value;
}

export function writeStamp(file, value) {
  mkdirSync(dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}.partial`;
  writeFileSync(partial, value);
  renameSync(partial, file);
}

export function clearStamp(file) {
  rmSync(file, { force: true });
}

/** One hash over the names and contents of files and folders; a missing one counts as empty. */
export function hashOf(base, paths, salt = "") {
  const hash = createHash("sha256").update(salt);
  for (const path of paths) {
    for (const file of filesUnder(join(base, path))) {
      hash.update(`\0${relative(base, file)}\0`).update(readFileSync(file));
    }
  }
  return hash.digest("hex");
}

function filesUnder(path) {
  let entries;
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOTDIR") return [path];
    if (error.code === "ENOENT") return [];
    throw error;
  }
  return entries
    .filter((entry) => entry.name !== "node_modules")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(path, entry.name)) : [join(path, entry.name)]));
}
