// Emscripten's glue for threads, for browsers and for Node. What is for Node is asked for at run time and by a name put together there:
// bundlers for browsers find nothing of it, and a bundle for a server that lacks the file reports that threads cannot start.
import createInBrowser from "./glue-threads-web.js";

const isNode = typeof globalThis.process?.versions?.node === "string" && globalThis.process.type !== "renderer";

export default async function createGlue(settings) {
  if (!isNode) return createInBrowser(settings);
  const file = ["./glue-threads", "node.js"].join("-");
  const { default: createInNode } = await import(/* webpackIgnore: true */ /* @vite-ignore */ file);
  return createInNode(settings);
}
