/** Runs each contestant in a Node process of its own. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Node 20 has relaxed SIMD behind a flag; newer ones have it by default and may not know the flag. */
export const relaxedFlags = Number(process.versions.node.split(".")[0]) < 22 ? ["--experimental-wasm-relaxed-simd"] : [];

export function nodeStage({ packageFolder, peersFolder }) {
  return {
    name: `Node ${process.versions.node} (V8 ${process.versions.v8})`,
    flags: relaxedFlags.join(" "),
    async enter(contestant) {
      const child = fork(fileURLToPath(new URL("node-participant.mjs", import.meta.url)), {
        execArgv: contestant.relaxed ? relaxedFlags : [],
        stdio: ["ignore", "ignore", "pipe", "ipc"],
        env: { ...process.env, ATTENTION_BENCH_PACKAGE: packageFolder, ATTENTION_BENCH_PEERS: peersFolder ?? "" },
      });
      let lastWords = "";
      child.stderr.on("data", (text) => {
        lastWords = (lastWords + text).slice(-1000);
      });
      return { ask: (message) => ask(child, message, () => lastWords), leave: () => child.kill("SIGKILL") };
    },
    async close() {},
  };
}

function ask(child, message, lastWords) {
  return new Promise((resolve) => {
    const answer = (result) => {
      child.off("message", answer);
      child.off("exit", gone);
      resolve(result);
    };
    const gone = (code) => answer({ error: `the process ended (${code}): ${lastWords().trim().split("\n").pop()}` });
    child.once("message", answer);
    child.once("exit", gone);
    child.send(message, (error) => error && answer({ error: String(error) }));
  });
}
