/**
 * Colours of numbers. Two scales, both of d3-scale-chromatic or built on its colours, both readable for colour-blind eyes because
 * brightness alone orders the values: weights from paper to ink, signed numbers from orange over paper to purple.
 */
import { interpolateRgb, interpolateRgbBasis, piecewise } from "d3-interpolate";
import { interpolatePuOr, interpolateYlGnBu } from "d3-scale-chromatic";

/** 256 colours as r, g, b bytes. */
export type Lut = Uint8ClampedArray;

export interface Palette {
  readonly weights: Lut;
  readonly signed: Lut;
  readonly ink: string;
  readonly quiet: string;
  readonly line: string;
  readonly hatch: string;
  readonly query: string;
  readonly key: string;
  readonly value: string;
}

const kLight = {
  // The first tenth of YlGnBu is yellow; on white paper a weight of 0 should be paper.
  weights: interpolateRgbBasis(["#fbfbf8", ...[0.18, 0.34, 0.5, 0.66, 0.82, 1].map(interpolateYlGnBu)]),
  signed: (t: number) => interpolatePuOr(1 - t),
};
const kDark = {
  weights: interpolateRgbBasis(["#191b20", "#1d3557", "#225ea8", "#1d91c0", "#41b6c4", "#a1dab4", "#ffffd9"]),
  // PuOr with its middle turned dark. Straight from colour to colour: a spline would pass its middle by, and 0 must be paper.
  signed: piecewise(interpolateRgb, ["#fdd0a2", "#f2953a", "#8a5010", "#1d1f24", "#5a4a94", "#9488c4", "#d8d3f0"]),
};

const made = new Map<boolean, { weights: Lut; signed: Lut }>();

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
}

/** The colours of the present theme; names of the stylesheet's variables say what they are for. */
export function palette(): Palette {
  const dark = isDark();
  let luts = made.get(dark);
  if (!luts) {
    const scales = dark ? kDark : kLight;
    luts = { weights: tabulate(scales.weights), signed: tabulate(scales.signed) };
    made.set(dark, luts);
  }
  const style = getComputedStyle(document.documentElement);
  const variable = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ...luts,
    ink: variable("ink"),
    quiet: variable("quiet"),
    line: variable("line"),
    hatch: variable("hatch"),
    query: variable("query"),
    key: variable("key"),
    value: variable("value"),
  };
}

function tabulate(scale: (t: number) => string): Lut {
  const lut = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const text = scale(i / 255);
    // d3 answers with rgb(…) or, for the colours it was given as they are, #rrggbb.
    const parts = text.startsWith("#")
      ? [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16))
      : (text.match(/[\d.]+/g) ?? []).map(Number);
    lut.set(parts.slice(0, 3), i * 3);
  }
  return lut;
}

/** Number → position 0..1 on a scale. */
export interface Scale {
  readonly lut: Lut;
  readonly at: (value: number) => number;
  /** Values to be written at the colour bar, left to right. */
  readonly ticks: readonly number[];
}

const kLogFloor = 1e-4;

/** 0 to the largest weight; on the logarithmic scale everything below 0.0001 is as light as 0. */
export function weightScale(values: ArrayLike<number>, log: boolean, lut: Lut): Scale {
  let largest = 0;
  for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
  largest ||= 1;
  if (!log) return { lut, at: (value) => value / largest, ticks: [0, largest / 2, largest] };
  const span = Math.log10(largest / kLogFloor);
  const at = (value: number) => (value <= kLogFloor ? 0 : Math.log10(value / kLogFloor) / span);
  return { lut, at, ticks: [kLogFloor, 1e-3, 1e-2, 1e-1, largest].filter((tick, i, all) => i === all.length - 1 || tick < largest / 1.8) };
}

/** -largest to largest, with 0 in the middle; infinities do not count. */
export function signedScale(values: ArrayLike<number>, lut: Lut): Scale {
  let largest = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]);
    if (size > largest && size !== Number.POSITIVE_INFINITY) largest = size;
  }
  largest ||= 1;
  return { lut, at: (value) => 0.5 + value / (2 * largest), ticks: [-largest, 0, largest] };
}

/** "#rrggbb" of a value on a scale. */
export function cssColour(scale: Scale, value: number): string {
  const [r, g, b] = rgb(scale, value);
  return `rgb(${r} ${g} ${b})`;
}

/** Whether dark or light writing is to be read on a value's colour. */
export function inkOn(scale: Scale, value: number): string {
  const [r, g, b] = rgb(scale, value);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff";
}

function rgb(scale: Scale, value: number): [number, number, number] {
  const i = byteAt(scale, value) * 3;
  return [scale.lut[i], scale.lut[i + 1], scale.lut[i + 2]];
}

/** Index into the table of 256 colours. NaN has no place on a scale and takes the lowest. */
export function byteAt(scale: Scale, value: number): number {
  const t = scale.at(value);
  return t > 0 ? Math.min(255, Math.round(t * 255)) : 0;
}
