/** A contestant in a Node process, started by node-processes.mjs. */
import { createRequire } from "node:module";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { makeParticipant } from "./participant.mjs";

const { ATTENTION_BENCH_PACKAGE, ATTENTION_BENCH_PEERS } = process.env;
const require = createRequire(join(ATTENTION_BENCH_PEERS || process.cwd(), "index.js"));

const host = {
  require,
  importPackage: () => import(pathToFileURL(join(ATTENTION_BENCH_PACKAGE, "dist/index.js")).href),
  /** The folder of a peer, with a separator at its end. */
  folder(name) {
    const file = require.resolve(name);
    const mark = join("node_modules", ...name.split("/"));
    return file.slice(0, file.lastIndexOf(mark) + mark.length) + sep;
  },
  async import(name) {
    try {
      return require(name);
    } catch (error) {
      if (error.code !== "ERR_REQUIRE_ESM") throw error;
      return import(pathToFileURL(require.resolve(name)).href);
    }
  },
};

const act = makeParticipant((file) => import(new URL(file, import.meta.url).href), host);
process.on("message", async (message) => process.send(await act(message)));
