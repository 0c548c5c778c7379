/** A folder of the tool cache that is either complete and of the wanted version, or made anew. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../lib/lock.mjs";
import { toolsDir } from "../lib/paths.mjs";
import { Problem } from "../lib/problem.mjs";
import { stampMatches, writeStamp } from "../lib/stamp.mjs";

/**
 * @param {string} name name of the folder
 * @param {string} recipe what it is made from: another recipe means another content
 * @param {(folders: { partial: string, final: string, work: string }) => Promise<void>} build fills `partial`, which is
 *        renamed to `final` when it is complete; `work` is for downloads and goes away
 * @returns {Promise<string>} its path
 */
export async function ensureFolder(name, recipe, build) {
  const final = join(toolsDir, name);
  const stamp = join(final, ".complete");
  if (stampMatches(stamp, recipe)) return final;
  try {
    mkdirSync(toolsDir, { recursive: true });
  } catch (error) {
    throw new Problem(`The tool folder ${toolsDir} cannot be made (${error.code}): set ATTENTION_TOOLS to a folder you can write to.`);
  }
  return withLock(join(toolsDir, ".lock"), async () => {
    if (stampMatches(stamp, recipe)) return final; // made by the process we waited for
    // What a killed run left: under the lock nobody else is using it.
    for (const left of readdirSync(toolsDir).filter((file) => file.startsWith(".work-"))) {
      rmSync(join(toolsDir, left), { recursive: true, force: true });
    }
    const work = mkdtempSync(join(toolsDir, ".work-"));
    try {
      const partial = join(work, name);
      mkdirSync(partial);
      await build({ partial, final, work });
      writeStamp(join(partial, ".complete"), recipe);
      rmSync(final, { recursive: true, force: true });
      renameSync(partial, final);
    } catch (error) {
      if (error.code === "ENOSPC") throw new Problem(`The disk of ${toolsDir} is full: about 2.5 GB are needed.`);
      throw error;
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    return final;
  });
}
