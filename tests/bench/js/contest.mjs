/**
 * One workload: every contestant prepares it and is verified, then all take turns, round by round, while the others wait. So all meet the same
 * machine, whatever else it does meanwhile.
 */
import { takesPart } from "./contestants.mjs";
import { compare, makeReference } from "./reference.mjs";
import { makeInputs, unitsOf } from "./workload.mjs";

/**
 * Each contestant gets budgetMs a round. The times of the warm rounds do not count: engines compile well what has run for a while, and do so beside the
 * calls that follow. One whose calls take slowMs and more gets slowRounds only.
 */
export const plans = {
  full: { rounds: 6, budgetMs: 60, most: 200, slowMs: 400, slowRounds: 2, warmRounds: 2 },
  quick: { rounds: 3, budgetMs: 25, most: 50, slowMs: 400, slowRounds: 1, warmRounds: 1 },
};

export async function runWorkload(w, { list, stage, enterNative, plan, quick, isBrowser }) {
  const reference = makeReference(w, makeInputs(w), quick ? 3e7 : 2e8);
  const taking = list.filter((contestant) => takesPart(contestant, w, { quick, isBrowser }));
  const entries = [];
  for (const contestant of taking) {
    const participant = contestant.isNative ? await enterNative() : await stage.enter(contestant);
    const prepared = await participant.ask(prepareMessage(contestant, w, reference));
    const entry = { contestant, participant, prepared, times: [], fastestMs: prepared.firstMs, error: prepared.error };
    if (!entry.error && !contestant.isLimit) entry.error = verify(w, reference, prepared, entry);
    if (entry.error) await participant.leave();
    entries.push(entry);
  }
  await takeTurns(entries, w, plan);
  for (const { participant, error } of entries) if (!error) await participant.leave();
  return { workload: w, results: entries.map((entry) => summary(w, entry)) };
}

/** Asks a participant to prepare a workload and to show `rows` of its result. What is not plain data, such as functions, stays here. */
export function prepareMessage(contestant, workload, { rows, width }) {
  return { command: "prepare", contestant: JSON.parse(JSON.stringify(contestant)), workload, rows, width };
}

/** The reason why a result does not count, or undefined. */
function verify(w, reference, prepared, entry) {
  if (prepared.verified !== undefined) {
    entry.check = prepared.verified;
    return prepared.verified <= 1e-4 ? undefined : `wrong by ${prepared.verified}`;
  }
  const length = w.seqLenQ * (w.embedDim ?? w.heads * w.headDim);
  if (prepared.length !== length) return `wrong: ${prepared.length} numbers, not ${length}`;
  const { error, isRight } = compare(reference, prepared.rows);
  entry.check = error;
  return isRight ? undefined : `wrong by ${error}`;
}

async function takeTurns(entries, w, plan) {
  for (let round = -plan.warmRounds; round < plan.rounds; round++) {
    for (const entry of entries) {
      if (w.once && !entry.contestant.isLimit && !entry.error) {
        entry.times = [entry.prepared.firstMs];
        continue;
      }
      const isSlow = entry.fastestMs > plan.slowMs;
      if (entry.error || (isSlow && (round < 0 || round >= plan.slowRounds))) continue;
      const { times, error, memoryBytes } = await entry.participant.ask({ command: "time", budgetMs: plan.budgetMs, most: plan.most });
      if (error) {
        entry.error = error;
        await entry.participant.leave();
        continue;
      }
      if (round >= 0) entry.times.push(...times);
      entry.fastestMs = Math.min(entry.fastestMs, ...times);
      entry.memoryBytes = memoryBytes;
    }
  }
}

function summary(w, { contestant, prepared, times, error, check, memoryBytes }) {
  const { id, threads, isOurs, isLimit, isNative, isPeer, variant } = contestant;
  const who = { id, threads, isOurs, isLimit, isNative, isPeer, variant, runs: times.length };
  if (error || times.length === 0) return { ...who, error: error ?? "no time was taken" };
  const sorted = times.map((time) => time / prepared.share).sort((a, b) => a - b);
  const minMs = sorted[0];
  const units = prepared.units ?? unitsOf(w);
  const medianMs = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  return {
    ...who,
    minMs,
    medianMs,
    firstMs: prepared.firstMs / prepared.share,
    share: prepared.share,
    check,
    memoryBytes,
    /** 1e9 a second: operations, or bytes read by a decoding step */
    rate: units / minMs / 1e6,
    medianRate: units / medianMs / 1e6,
  };
}
