/** Runs tools with their noise kept in a log file, and ends them when this process is ended. */
import { spawn } from "node:child_process";
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { Problem } from "./problem.mjs";
import { logFile } from "./paths.mjs";

const children = new Set();

// A download that goes on after Ctrl-C would write into folders the next run has cleaned.
for (const [signal, number] of [
  ["SIGINT", 2],
  ["SIGTERM", 15],
  ["SIGHUP", 1],
]) {
  process.on(signal, () => {
    for (const child of children) child.kill("SIGTERM");
    process.exit(128 + number);
  });
}

/**
 * Runs a tool, its output going to the log; resolves to that output. When the tool fails, throws a Problem.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string>, sorry?: string | ((output: string) => string),
 *           show?: (output: string) => string }} [options]
 *        sorry: the sentence to fail with, or a function that makes it from the tool's output;
 *        show: picks the lines of the output to show above it (the last 30 unless given)
 */
export function run(command, args, { cwd, env, sorry, show = (output) => lastLines(output, 30) } = {}) {
  mkdirSync(dirname(logFile), { recursive: true });
  const log = openSync(logFile, "a");
  writeSync(log, `\n$ ${[command, ...args].join(" ")}\n`);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (data) => {
        writeSync(log, data);
        output += data;
      });
    }
    const finish = (failure) => {
      children.delete(child);
      closeSync(log);
      if (failure === undefined) return resolve(output);
      const sentence = typeof sorry === "function" ? sorry(output) : sorry;
      reject(
        new Problem(sentence ?? `${command} failed (${failure}); the whole output is in ${logFile}.`, {
          detail: show(output),
        }),
      );
    };
    child.on("error", (error) => finish(error.message));
    child.on("close", (code, signal) => finish(code === 0 ? undefined : (signal ?? `exit code ${code}`)));
  });
}

/**
 * Runs a tool in the foreground, its output seen as it comes.
 * @returns {Promise<{ code: number, output: string }>} exit code and, with `capture`, a copy of what was printed
 */
export function runVisibly(command, args, { cwd, env, capture = false } = {}) {
  return new Promise((resolve, reject) => {
    const stdio = capture ? ["inherit", "pipe", "pipe"] : "inherit";
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio });
    children.add(child);
    let output = "";
    child.stdout?.on("data", (data) => {
      process.stdout.write(data);
      output += data;
    });
    child.stderr?.on("data", (data) => {
      process.stderr.write(data);
      output += data;
    });
    child.on("error", (error) => {
      children.delete(child);
      reject(new Problem(`${command} cannot be started (${error.message}).`));
    });
    child.on("close", (code, signal) => {
      children.delete(child);
      resolve({ code: code ?? (signal === "SIGINT" ? 130 : 1), output });
    });
  });
}

/** Full path of a program on PATH, or undefined. */
export function which(name) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this folder
    }
  }
  return undefined;
}

/** True when a tool's output says that a server could not be reached. */
export function isNetworkFailure(output) {
  return /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|Could not resolve|Temporary failure resolving|Failed to fetch|Could not connect|Connection (timed out|failed|refused)|Unable to connect|network/i.test(
    output,
  );
}

export function lastLines(text, count) {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}

export function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
