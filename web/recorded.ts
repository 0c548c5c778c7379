/** The run that examples/record.mjs kept: shown at once, until the library is there. */
import recorded from "./examples/recorded.json";
import type { Run, Stage, StageName } from "./examples/stages.mjs";

export function recordedRun(): Run {
  const stages = Object.fromEntries(
    Object.entries(recorded.stages).map(([name, { shape, base64 }]) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      return [name, { name, shape, data: new Float32Array(bytes.buffer) }];
    }),
  ) as Record<StageName, Stage>;
  const { sentence, numHeads, headDim, causal } = recorded;
  return { sentence, tokens: recorded.tokens as Run["tokens"], numHeads, headDim, causal, stages, milliseconds: 0 };
}

/** The nearest words to the output of each token of the recorded run. */
export const recordedNearest: readonly string[][] = recorded.nearest;
