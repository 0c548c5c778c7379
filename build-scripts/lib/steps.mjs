/** Progress on the terminal: one line per step, with the time it took. Goes to stderr, so results on stdout stay clean. */
const interactive = process.stderr.isTTY && !process.env.CI;

/** Says what is being done, does it, says how long it took. */
export async function step(label, work) {
  const start = performance.now();
  const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`;
  process.stderr.write(`· ${label} … `);
  // A running clock, so that a long download does not look like a hang.
  const clock = interactive ? setInterval(() => process.stderr.write(`\r· ${label} … ${seconds()} `), 1000) : undefined;
  try {
    const result = await work();
    clearInterval(clock);
    process.stderr.write(`${interactive ? `\r· ${label} … ` : ""}${seconds()}\n`);
    return result;
  } catch (error) {
    clearInterval(clock);
    process.stderr.write(`failed after ${seconds()}\n`);
    throw error;
  }
}
