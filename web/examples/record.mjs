#!/usr/bin/env node
/**
 * Makes recorded.json, the example that the page shows while the library is still loading:
 *
 *   node web/examples/record.mjs
 *
 * The numbers are the library's own, of the built package, as base64 of little-endian float32. A test compares them with what the
 * library computes in the browser; after a change of the weights or the sentence, run this again.
 */
import { writeFileSync } from "node:fs";
import { loadAttention } from "attention-wasm";
import { readWordTable } from "./files.mjs";
import { nearestToOutput, runSentence } from "./stages.mjs";

const kSentence = "the animal did not cross the street because it was too tired";

const table = await readWordTable();
const run = runSentence(await loadAttention(), table, kSentence, { numHeads: 4, causal: false });
const stages = Object.fromEntries(
  Object.entries(run.stages).map(([name, { shape, data }]) => {
    const base64 = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
    return [name, { shape, base64 }];
  }),
);
// The page has no word table yet when it shows this.
const nearest = run.tokens.map((_, row) => nearestToOutput(run, table, row));
// Without the time it took, so that the same numbers make the same file.
writeFileSync(new URL("recorded.json", import.meta.url), `${JSON.stringify({ ...run, nearest, stages, milliseconds: undefined })}\n`);
