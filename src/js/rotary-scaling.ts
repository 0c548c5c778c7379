/** Frequencies of rotary positions, and how models that were trained on short texts stretch them for long ones. */
import { checkOptionNames, describeValue, fail } from "./errors.js";

/**
 * How the frequencies of rotary positions are changed for texts longer than those of the training. Names are those of the papers and of model files
 * (`rope_scaling`, `rope_type`).
 *
 * | type | inverse frequency of pair i, with f = base^(-2i / rotaryDim) | source |
 * | --- | --- | --- |
 * | `"linear"` | f / factor | arXiv:2306.15595 |
 * | `"ntk"` | of the base base · factor^(d / (d - 2)), d = rotaryDim | "NTK-aware" |
 * | `"dynamic"` | the same with factor · length / originalMaxPositions - (factor - 1), for lengths beyond originalMaxPositions | "dynamic NTK" |
 * | `"llama3"` | long waves f / factor, short waves f, a blend between | Llama 3.1 |
 * | `"yarn"` | a blend of f and f / factor by the number of turns; cos and sin times attentionFactor | arXiv:2309.00071 |
 */
export type RotaryScaling =
  | { readonly type: "linear"; readonly factor: number }
  | { readonly type: "ntk"; readonly factor: number }
  | {
      readonly type: "dynamic";
      readonly factor: number;
      /** Positions that the model was trained on. */
      readonly originalMaxPositions: number;
      /** Length that the frequencies are made for. Default: one more than the largest position of the call, so that steps with a cache differ from one pass. */
      readonly length?: number | undefined;
    }
  | {
      readonly type: "llama3";
      readonly factor: number;
      readonly originalMaxPositions: number;
      /** Waves longer than originalMaxPositions / lowFrequencyFactor are stretched. Default: 1. */
      readonly lowFrequencyFactor?: number | undefined;
      /** Waves shorter than originalMaxPositions / highFrequencyFactor stay. Default: 4. */
      readonly highFrequencyFactor?: number | undefined;
    }
  | {
      readonly type: "yarn";
      readonly factor: number;
      readonly originalMaxPositions: number;
      /** Turns within originalMaxPositions from which on a pair stays as it is. Default: 32. */
      readonly betaFast?: number | undefined;
      /** Turns up to which a pair is stretched fully. Default: 1. */
      readonly betaSlow?: number | undefined;
      /** Factor on cos and sin. Default: 0.1 · ln(factor) + 1, or the quotient of the same with `mscale` and `mscaleAllDim` (DeepSeek). */
      readonly attentionFactor?: number | undefined;
      readonly mscale?: number | undefined;
      readonly mscaleAllDim?: number | undefined;
      /** Whether the bounds of the blend are whole numbers. Default: `true`. */
      readonly truncate?: boolean | undefined;
    };

/** Frequencies of rotary positions. */
export interface RotaryFrequencies {
  /** Angle per position of each pair, in radians [rotaryDim / 2]. */
  readonly inverseFrequencies: Float64Array;
  /** Factor on cos and sin: 1 but for `"yarn"`. */
  readonly attentionFactor: number;
}

/**
 * The frequencies that rotary positions use: the angle of pair i at position p is p · inverseFrequencies[i].
 *
 * @param rotaryDim - Number of elements that are turned; even.
 * @param options - `base` (default 10000), `scaling` (default none), see {@link RotaryScaling}.
 * @param length - Length of the text, for `"dynamic"`; without it the frequencies are those of short texts.
 * @throws AttentionError `"option"`.
 */
export function rotaryFrequencies(
  rotaryDim: number,
  options: { readonly base?: number | undefined; readonly scaling?: RotaryScaling | undefined } = {},
  length = 0,
): RotaryFrequencies {
  checkOptionNames(options, new Set(["base", "scaling"]), "options");
  const { base = 10000, scaling } = options;
  if (!Number.isInteger(rotaryDim) || rotaryDim < 2 || rotaryDim % 2 !== 0)
    fail("option", "rotaryDim", "an even number of at least 2", describeValue(rotaryDim));
  checkBase(base);
  if (scaling !== undefined) checkScaling(scaling, "options.scaling");
  return frequencies(rotaryDim, base, scaling, length);
}

export function checkBase(base: unknown): void {
  if (typeof base !== "number" || !(base > 1) || !Number.isFinite(base))
    fail("option", "options.base", "a number above 1", describeValue(base));
}

const FIELDS: Record<string, { needed: readonly string[]; others: readonly string[] }> = {
  linear: { needed: ["factor"], others: [] },
  ntk: { needed: ["factor"], others: [] },
  dynamic: { needed: ["factor", "originalMaxPositions"], others: ["length"] },
  llama3: { needed: ["factor", "originalMaxPositions"], others: ["lowFrequencyFactor", "highFrequencyFactor"] },
  yarn: {
    needed: ["factor", "originalMaxPositions"],
    others: ["betaFast", "betaSlow", "attentionFactor", "mscale", "mscaleAllDim", "truncate"],
  },
};

/** Throws for a scaling that is not one of {@link RotaryScaling}. */
export function checkScaling(scaling: RotaryScaling, argument: string): void {
  if (typeof scaling !== "object" || scaling === null) fail("option", argument, "an object with a type", describeValue(scaling));
  const known = Object.hasOwn(FIELDS, scaling.type) ? FIELDS[scaling.type]! : undefined;
  if (known === undefined)
    fail("option", `${argument}.type`, '"linear", "ntk", "dynamic", "llama3" or "yarn"', describeValue(scaling.type));
  checkOptionNames(scaling, new Set(["type", ...known.needed, ...known.others]), argument);
  const given = scaling as unknown as Record<string, unknown>;
  for (const name of [...known.needed, ...known.others]) {
    const value = given[name];
    if (name === "truncate") {
      if (value !== undefined && typeof value !== "boolean") fail("option", `${argument}.truncate`, "true or false", describeValue(value));
    } else if (value !== undefined || known.needed.includes(name)) {
      if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value))
        fail("option", `${argument}.${name}`, "a number above 0", describeValue(value));
    }
  }
  if (scaling.factor < 1) fail("option", `${argument}.factor`, "a number of at least 1", describeValue(scaling.factor));
}

/** The same as {@link rotaryFrequencies}, for arguments that were checked. */
export function frequencies(rotaryDim: number, base: number, scaling: RotaryScaling | undefined, length: number): RotaryFrequencies {
  const plain = (ofBase: number): Float64Array => Float64Array.from({ length: rotaryDim / 2 }, (_, i) => ofBase ** ((-2 * i) / rotaryDim));
  if (scaling === undefined) return { inverseFrequencies: plain(base), attentionFactor: 1 };
  // With two elements there is one pair, of frequency 1 whatever the base is.
  const power = rotaryDim > 2 ? rotaryDim / (rotaryDim - 2) : 0;
  switch (scaling.type) {
    case "linear":
      return { inverseFrequencies: plain(base).map((f) => f / scaling.factor), attentionFactor: 1 };
    case "ntk":
      return { inverseFrequencies: plain(base * scaling.factor ** power), attentionFactor: 1 };
    case "dynamic": {
      const { factor, originalMaxPositions } = scaling;
      const reached = Math.max(originalMaxPositions, scaling.length ?? length);
      return { inverseFrequencies: plain(base * ((factor * reached) / originalMaxPositions - (factor - 1)) ** power), attentionFactor: 1 };
    }
    case "llama3":
      return { inverseFrequencies: plain(base).map((f) => llama3(f, scaling)), attentionFactor: 1 };
    case "yarn":
      return yarn(plain(base), base, rotaryDim, scaling);
  }
}

function llama3(f: number, scaling: Extract<RotaryScaling, { type: "llama3" }>): number {
  const { factor, originalMaxPositions, lowFrequencyFactor = 1, highFrequencyFactor = 4 } = scaling;
  const turns = (originalMaxPositions * f) / (2 * Math.PI);
  if (turns < lowFrequencyFactor) return f / factor;
  if (turns > highFrequencyFactor) return f;
  const smooth = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return ((1 - smooth) * f) / factor + smooth * f;
}

function yarn(plain: Float64Array, base: number, rotaryDim: number, scaling: Extract<RotaryScaling, { type: "yarn" }>): RotaryFrequencies {
  const { factor, originalMaxPositions, betaFast = 32, betaSlow = 1, mscale, mscaleAllDim, truncate = true } = scaling;
  // The pair that makes so many turns within originalMaxPositions.
  const pairOf = (turns: number): number => (rotaryDim * Math.log(originalMaxPositions / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  let low = pairOf(betaFast);
  let high = pairOf(betaSlow);
  if (truncate) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, rotaryDim - 1);
  if (low === high) high += 0.001;
  const inverseFrequencies = plain.map((f, i) => {
    const stretched = Math.min(1, Math.max(0, (i - low) / (high - low)));
    return (stretched * f) / factor + (1 - stretched) * f;
  });
  const magnitude = (m: number): number => (factor <= 1 ? 1 : 0.1 * m * Math.log(factor) + 1);
  const attentionFactor =
    scaling.attentionFactor ??
    (mscale !== undefined && mscaleAllDim !== undefined ? magnitude(mscale) / magnitude(mscaleAllDim) : magnitude(1));
  return { inverseFrequencies, attentionFactor };
}
