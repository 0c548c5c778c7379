// The build puts Emscripten's glue beside the compiled JavaScript; this is its type.
import type { GlueFactory } from "./glue-module.js";
declare const createGlue: GlueFactory;
export default createGlue;
