/** Where things are: the repository, what is generated in it, and the tools that all clones share. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(fileURLToPath(import.meta.url), "../../..");
export const buildDir = join(root, "build");
export const distDir = join(root, "dist");
export const logFile = join(buildDir, "log.txt");

/** Downloaded tools; about 2 GB, so one copy per user and not one per clone. */
export const toolsDir = process.env.ATTENTION_TOOLS
  ? resolve(process.env.ATTENTION_TOOLS)
  : join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "attention-wasm");
