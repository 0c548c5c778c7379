/** Finds ONNX's test cases below a folder and reads them. */
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { decodeSingleNode, decodeTensor } from "./proto.mjs";

/** Where a checkout of onnx keeps the cases of single operators. */
const BELOW_ROOT = ["", "node", "data/node", "test/data/node", "backend/test/data/node", "onnx/backend/test/data/node"];

/** The folder that holds the test_* folders: the given one, or the one that a checkout of onnx has below it. Undefined when there is none. */
export function findNodeFolder(folder) {
  return BELOW_ROOT.map((path) => join(folder, path)).find((path) => isFolder(path) && caseFolders(path).length > 0);
}

/** Folders of cases, sorted by name. A folder that is itself a case gives itself. */
export function caseFolders(folder) {
  if (existsSync(join(folder, "model.onnx"))) return [folder];
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => isFolder(path) && existsSync(join(path, "model.onnx")));
}

function isFolder(path) {
  return existsSync(path) && statSync(path).isDirectory();
}

/** Name of a case and its node; the node is undefined for models of several nodes, such as the _expanded variants. */
export function readModel(folder) {
  return { folder, name: basename(folder).replace(/^test_/, ""), node: decodeSingleNode(readFileSync(join(folder, "model.onnx"))) };
}

/**
 * The sets of data of a case: tensors by the node's own positions, undefined where an optional one is absent.
 * Throws for a case without data: one that compares nothing must not pass.
 */
export function readDataSets({ folder, node }) {
  const sets = readdirSync(folder)
    .filter((name) => /^test_data_set_\d+$/.test(name))
    .sort();
  if (sets.length === 0) throw new Error("there is no test_data_set");
  return sets.map((set) => ({
    set,
    inputs: readTensors(join(folder, set), "input", node.inputs, node.graphInputs),
    outputs: readTensors(join(folder, set), "output", node.outputs, node.graphOutputs),
  }));
}

// File number k belongs to the k-th input (output) of the graph; absent optional inputs of the node have an empty name and no file.
function readTensors(folder, kind, names, graphNames) {
  if (names.every((name) => name === "")) throw new Error(`the node has no ${kind}s`);
  return names.map((name) => {
    if (name === "") return undefined;
    const index = graphNames.indexOf(name);
    const file = join(folder, `${kind}_${index}.pb`);
    if (index < 0 || !existsSync(file)) throw new Error(`${kind} ${name} has no file ${kind}_${index}.pb`);
    return decodeTensor(readFileSync(file));
  });
}
