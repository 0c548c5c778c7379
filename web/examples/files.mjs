/** Reads the word table beside this file, in Node. The page fetches the same two files instead. */
import { readFile } from "node:fs/promises";
import { parseWordTable } from "./word-table.mjs";

export async function readWordTable() {
  const [text, bytes] = await Promise.all([
    readFile(new URL("words-100d.txt", import.meta.url), "utf8"),
    readFile(new URL("words-100d.f16.bin", import.meta.url)),
  ]);
  // A Buffer of Node may be a window into a larger one.
  return parseWordTable(text, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
}
