/** LiteRT.js is written for pages; in Node it finds here the few names of a page that it asks for. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

export function lendPage(folder, threads, require) {
  Object.assign(globalThis, {
    self: globalThis,
    require,
    __dirname: folder,
    __filename: join(folder, "litert_wasm_threaded_internal.js"),
    importScripts: (file) => vm.runInThisContext(`${readFileSync(file, "utf8")}; globalThis.ModuleFactory = ModuleFactory;`),
    Module: { locateFile: (file) => join(folder, file) },
  });
  if (threads === 1) return;
  globalThis.navigator ??= { hardwareConcurrency: threads, userAgent: "" };
  // Its worker is a plain script in a package of ES modules: run as text, it is what it says.
  const threadsModule = require("node:worker_threads");
  const { Worker } = threadsModule;
  threadsModule.Worker = class extends Worker {
    constructor(file, options) {
      super(readFileSync(file, "utf8"), { ...options, eval: true });
    }
  };
}
