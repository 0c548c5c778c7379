/** Files of a model: weights read by ranges, and what stands beside them. */
import { open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * A source for `openSafetensors` that reads ranges of a file on disk, so that a file may be larger than memory.
 * @param {string} path
 */
export async function fileSource(path) {
  const file = await open(path);
  const { size } = await file.stat();
  return {
    size,
    /** @param {number} offset @param {number} length */
    async read(offset, length) {
      const bytes = new Uint8Array(length);
      for (let done = 0; done < length; ) {
        const { bytesRead } = await file.read(bytes, done, length - done, offset + done);
        if (bytesRead === 0) throw new Error(`${path} ends at byte ${offset + done}`);
        done += bytesRead;
      }
      return bytes;
    },
    close: () => file.close(),
  };
}

/**
 * The text of a file that stands beside another one, or undefined when there is none.
 * @param {string} path
 * @param {string} name
 */
export async function textBeside(path, name) {
  try {
    return await readFile(join(dirname(path), name), "utf8");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}
