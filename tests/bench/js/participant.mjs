/**
 * One contestant's side, in a process or a tab of its own: prepares a workload, shows rows of its result, and takes times when it is its turn.
 * Answers are plain data, so that a pipe and a page can carry them.
 */
import { makeInputs } from "./workload.mjs";

/** A clock of a page ticks every 5 µs: shorter calls are timed in batches. */
const kShortestSample = 1; // ms

/** @param {(file: string) => Promise<object>} importAdapter @param {object} host how peers' files are reached from here */
export function makeParticipant(importAdapter, host) {
  let adapter;
  let job;
  const commands = {
    async prepare({ contestant, workload, rows, width }) {
      adapter = await (await importAdapter(contestant.adapter)).load(contestant, host);
      job = await adapter.prepare(workload, makeInputs(workload), rows);
      const started = performance.now();
      const output = await job.run();
      const firstMs = performance.now() - started;
      if (firstMs > 2000) job.calls = 1;
      const answer = { firstMs, share: job.share ?? 1, units: job.units };
      if (job.units !== undefined) return answer;
      const data = job.read ? job.read(output) : output;
      return { ...answer, length: data.length, rows: rows.map((row) => Array.from(data.subarray(row * width, (row + 1) * width))) };
    },

    /** Times of single calls in milliseconds: as many as fit, at least one, at most `most` samples. */
    async time({ budgetMs, most }) {
      job.calls ??= await callsPerSample();
      const calls = job.calls;
      const times = [];
      for (const end = performance.now() + budgetMs; times.length === 0 || (times.length < most && performance.now() < end); ) {
        times.push((await timed(calls)) / calls);
      }
      return { times, memoryBytes: adapter.memoryBytes?.() };
    },
  };

  /**
   * Doubles the number of calls until they last long enough, which warms up short ones as well. Three times each: a single
   * time may hold a pause.
   */
  async function callsPerSample() {
    for (let calls = 1; ; calls *= 2) {
      const lasted = await timed(calls);
      const isEnough = lasted > 100 * kShortestSample || Math.min(lasted, await timed(calls), await timed(calls)) >= kShortestSample;
      if (isEnough || calls >= 2 ** 16) return calls;
    }
  }

  async function timed(calls) {
    const started = performance.now();
    for (let i = 0; i < calls; i++) {
      const result = job.run();
      if (result instanceof Promise) await result; // a synchronous contestant does not pay for a turn of the event loop
    }
    return performance.now() - started;
  }

  return async ({ command, ...args }) => {
    try {
      return await commands[command](args);
    } catch (error) {
      return {
        error: String(error?.message ?? error)
          .split("\n")[0]
          .slice(0, 200),
      };
    }
  };
}
