/** Who takes part. `adapter` is a file beside participant.mjs; `relaxed` asks for an engine with relaxed SIMD; `slow` stays out of quick runs. */
import { peers } from "../peers/contestants.mjs";

const ours = ["simd", "relaxed"].flatMap((variant) =>
  [{ threads: 1 }, { threads: 1, reusesOutput: true }, { threads: 2 }].map(({ threads, reusesOutput }) => ({
    id: `attention-wasm ${variant}${reusesOutput ? ", output reused" : ""}${threads > 1 ? `, ${threads} threads` : ""}`,
    adapter: "attention-wasm.mjs",
    variant,
    threads,
    reusesOutput,
    relaxed: variant === "relaxed",
    isOurs: true,
  })),
);

const limits = [
  { id: "limit: mul + add", adapter: "simd-limit.mjs", limit: "simd", isLimit: true },
  { id: "limit: relaxed madd", adapter: "simd-limit.mjs", limit: "relaxed", relaxed: true, isLimit: true },
];

const plain = { id: "plain JavaScript", adapter: "plain-javascript.mjs", threads: 1 };
const native = { id: "native", isNative: true, threads: 1 };

export function contestants({ withPeers, withNative }) {
  return [...limits, ...ours, ...(withNative ? [native] : []), plain, ...(withPeers ? peers : [])];
}

export function takesPart(contestant, w, { quick, isBrowser }) {
  if (quick && contestant.slow) return false;
  if (contestant.limit === "relaxed" && w.group === "decode") return false; // the same bytes are read
  if (contestant.isLimit) return w.group !== "small";
  if (contestant.isNative) return !isBrowser && w.only !== "package" && w.group !== "small";
  if (contestant.reusesOutput && (w.only === "package" || w.group === "small")) return false;
  if (w.only === "package") return contestant.isOurs && contestant.threads === 1;
  // Small work stays on one thread, and the fixed cost of a call is what is looked at.
  if (w.group === "small") return contestant.threads === 1 && (contestant.isOurs || contestant.id === plain.id || contestant.takesSmall);
  return contestant.supports?.(w) ?? true;
}
