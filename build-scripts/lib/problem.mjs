/** A failure the person at the keyboard can do something about: its message is one sentence that says what. */
export class Problem extends Error {
  /** @param {string} message @param {{ detail?: string }} [more] detail: tool output worth showing below the sentence */
  constructor(message, { detail = "" } = {}) {
    super(message);
    this.name = "Problem";
    this.detail = detail;
  }
}

/** Runs a command's main function; a Problem becomes its sentence and exit code 1, anything else keeps its stack trace. */
export async function main(body) {
  try {
    const code = await body();
    if (typeof code === "number") process.exitCode = code;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.detail) process.stderr.write(`${error.detail}\n\n`);
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
