/**
 * Small edits to Emscripten's threaded glue, where its output does not suit bundlers or good manners. Each must apply exactly once:
 * another version of Emscripten that writes something else stops the build instead of shipping something untried.
 */
import { Problem } from "./problem.mjs";

/** @param {string} text glue-threads-web.js */
export function editWebGlue(text) {
  return edit(text, "glue-threads-web.js", [
    // The loader hands the compiled module in; bundlers would look for this file and fail.
    ['new URL("glue-threads-web.wasm",import.meta.url).href', '""'],
    // Vite reads a worker's options and refuses a variable; a name without "./" is a package for some bundlers.
    [
      'var workerOptions={type:"module",name:"em-pthread"};worker=new Worker(new URL("glue-threads-web.js",import.meta.url),workerOptions)',
      'worker=new Worker(new URL("./glue-threads-web.js",import.meta.url),{type:"module",name:"em-pthread"})',
    ],
  ]);
}

/** @param {string} text glue-threads-node.js */
export function editNodeGlue(text) {
  return edit(text, "glue-threads-node.js", [
    ['new URL("glue-threads-node.wasm",import.meta.url).href', '""'],
    // A library defines no globals in its user's program.
    ["global.Worker=worker_threads.Worker", "var Worker=worker_threads.Worker"],
    // Workers inherit Node's options, some of which (--input-type, --eval) make no sense for a file and end them at once.
    ['workerData:"em-pthread",name:"em-pthread"}', 'workerData:"em-pthread",name:"em-pthread",execArgv:[]}'],
  ]);
}

function edit(text, name, replacements) {
  return replacements.reduce((edited, [from, to]) => {
    const parts = edited.split(from);
    if (parts.length !== 2) {
      throw new Problem(
        `${name} was expected to hold this once and holds it ${parts.length - 1} times, so this Emscripten is not known here yet: ${from}`,
      );
    }
    return parts.join(to);
  }, text);
}
