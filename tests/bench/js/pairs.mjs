/**
 * The ratios of workloads.json, measured by taking turns: a machine that others use as well is faster now and slower then, and two workloads that
 * were timed one after the other would differ by that.
 */
import { prepareMessage } from "./contest.mjs";
import { unitsOf } from "./workload.mjs";

const kRounds = { full: 8, quick: 2 };
const kBudgetMs = 60;
const kMost = 100;

/**
 * @param ratio of workloads.json: { of, to, perOperation }
 * @returns {Promise<{ of: string, to: string, variant: string, ratio: number }[]>} one for each variant; none for a workload that runs once
 */
export async function runPair(ratio, workloads, { list, stage, quick }) {
  const pair = [ratio.of, ratio.to].map((id) => workloads.find((w) => w.id === id));
  if (pair.some((w) => w === undefined || w.once)) return [];
  const found = [];
  for (const contestant of list.filter((it) => it.isOurs && it.threads === 1 && !it.reusesOutput)) {
    const participants = [];
    try {
      for (const workload of pair) {
        const participant = await stage.enter(contestant);
        participants.push(participant);
        await answer(participant, prepareMessage(contestant, workload, { rows: [0], width: 1 }));
      }
      const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      for (let round = -1; round < (quick ? kRounds.quick : kRounds.full); round++) {
        for (const [i, participant] of participants.entries()) {
          const { times } = await answer(participant, { command: "time", budgetMs: kBudgetMs, most: kMost });
          if (round >= 0) best[i] = Math.min(best[i], ...times);
        }
      }
      const [of, to] = pair.map((w, i) => best[i] / (ratio.perOperation ? unitsOf(w) : 1));
      found.push({ of: ratio.of, to: ratio.to, variant: contestant.variant, ratio: of / to });
    } finally {
      for (const participant of participants) await participant.leave();
    }
  }
  return found;
}

async function answer(participant, message) {
  const result = await participant.ask(message);
  if (result.error) throw new Error(result.error);
  return result;
}
