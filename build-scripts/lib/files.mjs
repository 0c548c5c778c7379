/** Small helpers around files. */
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export function emptyFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

/**
 * Makes a folder hold exactly these files. One that is right already is not touched, so that its time stays and a
 * development server sees no change; one that is not listed is removed.
 * @param {string} folder
 * @param {Map<string, Buffer | string>} files name to content
 */
export function syncFolder(folder, files) {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!files.has(name)) rmSync(join(folder, name), { recursive: true, force: true });
  }
  for (const [name, content] of files) {
    const path = join(folder, name);
    const bytes = Buffer.from(content);
    if (!equals(path, bytes)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
    }
  }
}

function equals(path, bytes) {
  try {
    return readFileSync(path).equals(bytes);
  } catch {
    return false;
  }
}
