/**
 * Runs ONNX's own test cases through the installed package.
 *   npm run test:onnx -- FOLDER [--binary NAME]
 * FOLDER (or $ATTENTION_ONNX_DATA) is a checkout of onnx that has its node test data, or any folder with such cases. Every binary that ships runs every
 * case; --binary picks one. A case passes when it passes on all of them. Ends on one line: N passed, N failed, N skipped.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { caseFolders, findNodeFolder, readDataSets, readModel } from "./cases.mjs";
import { difference } from "./compare.mjs";
import { allowRelaxedSimd, loadBinary, shippedBinaries } from "./instances.mjs";
import { planFor, runNode } from "./operators.mjs";

const counts = { passed: 0, failed: 0, skipped: 0 };
await main(process.argv.slice(2));
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 ? 1 : 0;

async function main(words) {
  const binaryAt = words.indexOf("--binary");
  const [, binary] = binaryAt < 0 ? [] : words.splice(binaryAt, 2);
  const given = words[0] ?? process.env.ATTENTION_ONNX_DATA;
  if (given === undefined || given === "") {
    console.log(
      "skipped: no folder given. Say npm run test:onnx -- FOLDER, or set ATTENTION_ONNX_DATA, with a checkout of onnx that has its test data.",
    );
    counts.skipped++;
    return;
  }
  const folder = findNodeFolder(findGiven(given));
  const cases = folder === undefined ? [] : caseFolders(folder).map(readModel);
  const relevant = cases.filter(({ node }) => node !== undefined && planFor(node.type) !== undefined);
  if (relevant.length === 0) return fail(given, "there is no test case of an attention operator in it");

  allowRelaxedSimd();
  const instances = await loadInstances(binary);
  if (instances.length === 0) return; // said already, once for each binary
  for (const each of relevant) {
    if (planFor(each.node.type) === "skip") counts.skipped++;
    else runCase(each, instances);
  }
  for (const { attn } of instances) attn.dispose();
  const skipped = counts.skipped > 0 ? "; skipped are operators that the package does not offer" : "";
  console.log(`${relevant.length} cases on ${instances.map(({ name }) => name).join(", ")}${skipped}`);
}

/** The folder as typed: relative to where the command was typed, which npm remembers, or to where it runs. */
function findGiven(given) {
  const fromThere = resolve(process.env.INIT_CWD ?? ".", given);
  return existsSync(fromThere) ? fromThere : resolve(given);
}

async function loadInstances(binary) {
  const instances = [];
  for (const name of binary === undefined ? shippedBinaries() : [binary]) {
    try {
      instances.push({ name, attn: await loadBinary(name) });
    } catch (error) {
      fail(`binary ${name}`, error.message); // a binary that was not run is no success
    }
  }
  return instances;
}

function runCase(each, instances) {
  const faults = [];
  for (const { name, attn } of instances) {
    try {
      for (const { set, inputs, outputs } of readDataSets(each)) {
        for (const fault of compareAll(each.node, outputs, runNode(attn, each.node, inputs))) faults.push(`${name}, ${set}: ${fault}`);
      }
    } catch (error) {
      faults.push(`${name}: ${error.message}`);
    }
  }
  if (faults.length > 0) fail(each.name, faults.join("; "));
  else counts.passed++;
}

function compareAll(node, expected, actual) {
  const faults = [];
  expected.forEach((tensor, position) => {
    if (tensor === undefined) return;
    const { name, tensor: result } = actual[position];
    const fault = difference(tensor, result);
    if (fault !== undefined) faults.push(`${node.type}'s ${name} ${fault}`);
  });
  return faults;
}

function fail(name, why) {
  counts.failed++;
  console.log(`FAILED ${name}: ${why}`);
}
