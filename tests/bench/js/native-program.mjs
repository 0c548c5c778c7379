/** The same C++ source compiled for this machine (tests/bench/cpp), as one more contestant: it is started anew for each turn. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const start = promisify(execFile);

export async function enterNative(program) {
  let words;
  return {
    async ask({ command, workload, budgetMs, most }) {
      try {
        if (command === "prepare") words = wordsOf(workload);
        const { stdout } = await start(program, ["workload", ...words, String(budgetMs ?? 0), String(most ?? 1)], { maxBuffer: 2 ** 26 });
        const { times, error } = JSON.parse(stdout);
        // It verifies itself, against the float64 reference of the C++ tests.
        return command === "prepare" ? { firstMs: times[0], share: 1, verified: error } : { times };
      } catch (error) {
        return { error: String(error.stderr || error.message).split("\n")[0] };
      }
    },
    leave() {},
  };
}

function wordsOf(w) {
  const { left = -1, right = -1 } = w.window ?? {};
  return [w.heads, w.kvHeads, w.seqLenQ, w.seqLenK, w.headDim, w.embedDim ?? 0, w.causal ? 1 : 0, left, right].map(String);
}
