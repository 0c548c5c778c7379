/** What is in the tarball, and what must not be in it. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { repository } from "./consumer";

const folder = join(repository, "build/installed/node_modules/attention-wasm");
const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => statSync(join(folder, file)).isFile());
const scripts = files.filter((file) => file.endsWith(".js"));
const text = (file: string) => readFileSync(join(folder, file), "utf8");
const kilobytes = (list: readonly string[], zip = false) =>
  list.map((file) => readFileSync(join(folder, file))).reduce((sum, bytes) => sum + (zip ? gzipSync(bytes).length : bytes.length), 0) /
  1024;

describe("the tarball", () => {
  test("holds the code, its types, the binaries, the licences and the README, and nothing else", () => {
    const unexpected = files.filter(
      (file) =>
        !/^(package\.json|README\.md|LICENSE|CHANGELOG\.md|dist\/[\w.-]+\.(js|d\.ts|wasm)|dist\/THIRD-PARTY-LICENSES\.txt)$/.test(file),
    );
    expect(unexpected).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining([
        "LICENSE",
        "dist/THIRD-PARTY-LICENSES.txt",
        "dist/attention.simd.wasm",
        "dist/attention.relaxed.wasm",
        "dist/attention.simd-threads.wasm",
        "dist/attention.relaxed-threads.wasm",
        "dist/glue.js",
        "dist/glue-threads-web.js",
        "dist/glue-threads-node.js",
      ]),
    );
  });

  test("needs no other package and runs nothing when it is installed", () => {
    expect(manifest.dependencies ?? {}).toEqual({});
    expect(Object.keys(manifest.scripts ?? {}).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
  });

  test("has every file that its exports name", () => {
    const targets = Object.values(manifest.exports as Record<string, string | Record<string, string>>).flatMap((entry) =>
      typeof entry === "string" ? [entry] : Object.values(entry),
    );
    const missing = targets.filter((target) => !target.includes("*")).filter((target) => !files.includes(target.replace(/^\.\//, "")));
    expect(missing).toEqual([]);
  });

  test("names the licence of everything that is compiled in", () => {
    const licences = text("dist/THIRD-PARTY-LICENSES.txt");
    for (const work of ["xsimd", "Emscripten", "musl", "dlmalloc", "libc++", "compiler-rt"]) expect(licences).toContain(work);
  });

  test("has a declaration for every script that people import", () => {
    expect(scripts.filter((file) => !/glue|inline-binary/.test(file) && !files.includes(file.replace(/\.js$/, ".d.ts")))).toEqual([]);
  });

  test("makes no code from strings and carries no source maps or foreign paths", () => {
    for (const file of scripts) {
      const code = text(file).replace(/\/\*[\s\S]*?\*\//g, "");
      expect(code, file).not.toMatch(/\beval\s*\(|new Function\b|sourceMappingURL/);
      expect(code, file).not.toMatch(/\/(home|root|work|Users)\//);
    }
  });

  test("mentions no Node module in what a browser loads", () => {
    for (const file of scripts.filter((name) => !name.endsWith("glue-threads-node.js"))) {
      expect(text(file), file).not.toMatch(/(from|import|require)\s*\(?\s*["'](node:[\w/]+|fs|path|url|module|worker_threads)["']/);
    }
  });
});

describe("the binaries", () => {
  // f32x4.relaxed_madd is 0xfd 0x105; the vector instructions are prefixed by 0xfd.
  const count = (file: string, sequence: readonly number[]) =>
    readFileSync(join(folder, file))
      .toString("latin1")
      .split(String.fromCharCode(...sequence)).length - 1;

  test("compute with vectors, and only the relaxed ones with relaxed instructions", () => {
    for (const threads of ["", "-threads"]) {
      expect(count(`dist/attention.simd${threads}.wasm`, [0xfd])).toBeGreaterThan(1000);
      expect(count(`dist/attention.simd${threads}.wasm`, [0xfd, 0x85, 0x02])).toBe(0);
      expect(count(`dist/attention.relaxed${threads}.wasm`, [0xfd, 0x85, 0x02])).toBeGreaterThan(50);
    }
  });

  test("keep within the size that the README states", () => {
    // Room for a few features; a larger jump is a mistake in a flag, or something to decide on purpose.
    expect(kilobytes(["dist/attention.simd.wasm"])).toBeLessThan(256);
    expect(kilobytes(["dist/attention.simd.wasm"], true)).toBeLessThan(96);
    const perPage = scripts.filter((file) => !/threads|inline|onnx/.test(file));
    expect(kilobytes(perPage, true)).toBeLessThan(96); // as published, with the comments that a bundler drops
  });
});
