/** The folder of the package under test, read off the stack of an error it throws: right wherever its name leads to. */
import { type AttentionError, tensor } from "attention-wasm";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

function find(): string {
  try {
    (tensor as (data: unknown) => void)(undefined);
  } catch (error) {
    const frame = /(?:file:\/\/)?(\/[^\n]*?\/tensor\.js)/.exec((error as AttentionError).stack ?? "");
    if (frame !== null) return dirname(frame[0].startsWith("file:") ? fileURLToPath(frame[0]) : frame[0]);
  }
  throw new Error("the package's folder could not be found");
}

export const packageFolder = find();
