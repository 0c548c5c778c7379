/**
 * Weights under the names that files really use. Each family is one file, `weight-family-*.ts`: which names it has, in which order the axes stand, and what
 * each part is for. Names are those below the attention module; a prefix is taken off before.
 */
import { fail, failWith } from "./errors.js";
import {
  readMatrix,
  readOwnNames,
  readVector,
  readWeight,
  WEIGHT_NAMES,
  type LayerParts,
  type WeightLayout,
  type WeightMatrix,
  type WeightVector,
} from "./layer-weights.js";
import type { Operand } from "./operands.js";
import { bertFamily } from "./weight-family-bert.js";
import { gpt2Family } from "./weight-family-gpt2.js";
import { kerasFamily } from "./weight-family-keras.js";
import { llamaFamily } from "./weight-family-llama.js";
import { pytorchFamily } from "./weight-family-pytorch.js";
import { vitFamily } from "./weight-family-vit.js";

/** One way of naming the weights of attention. */
export interface WeightFamily {
  /** What people call it. */
  readonly title: string;
  /** Its names, for messages: needed ones first. */
  readonly wanted: readonly string[];
  /** Whether these names are of this family: its mark, not all of its names. */
  fits(names: NamedWeights): boolean;
  /** Reads the parts; `layout` is what the caller says of the order of axes, if anything. */
  read(names: NamedWeights, layout: WeightLayout | undefined): LayerParts;
  /** Names that files have beside them and that are no part of the projections. */
  readonly ignored: RegExp;
}

/** Weights by name, which notices what was never read. */
export class NamedWeights {
  readonly #tensors = new Map<string, { readonly value: unknown; readonly argument: string }>();
  readonly #unread = new Set<string>();

  /** Takes the tensors whose names begin with `prefix`, without it. TensorFlow's "a/b:0" becomes "a.b". */
  constructor(weights: Iterable<readonly [string, unknown]>, prefix: string) {
    for (const [name, value] of weights) {
      if (!name.startsWith(prefix)) continue;
      const short = name.slice(prefix.length).replace(/^[./]/, "").replace(/:0$/, "").replaceAll("/", ".");
      this.#tensors.set(short, { value, argument: `weights[${JSON.stringify(name)}]` });
      this.#unread.add(short);
    }
  }

  get names(): string[] {
    return [...this.#tensors.keys()];
  }

  has(name: string): boolean {
    return this.#tensors.has(name);
  }

  /** The first of several names that is there. */
  firstOf(...names: string[]): string | undefined {
    return names.find((name) => this.has(name));
  }

  /** A matrix of two axes. Throws when it is not there. */
  matrix(name: string, layout: WeightLayout): WeightMatrix {
    const { value, argument } = this.#take(name);
    return readMatrix(value, argument, layout);
  }

  /** A tensor of any rank. */
  weight(name: string): { operand: Operand; type: number } {
    const { value, argument } = this.#take(name);
    return readWeight(value, argument);
  }

  /** A vector, or undefined when there is none of this name. */
  vector(name: string | undefined): WeightVector | undefined {
    if (name === undefined || !this.has(name)) return undefined;
    const { value, argument } = this.#take(name);
    return readVector(value, argument);
  }

  #take(name: string): { readonly value: unknown; readonly argument: string } {
    const found = this.#tensors.get(name);
    if (found === undefined) fail("option", "weights", `a tensor named ${name}`, `the names ${list(this.names)}`);
    this.#unread.delete(name);
    return found;
  }

  /** Throws for names that nothing was done with: leaving out a norm or a bias would give wrong numbers. */
  checkAllRead(ignored: RegExp, title: string): void {
    const left = [...this.#unread].filter((name) => !ignored.test(name));
    if (left.length > 0) {
      fail(
        "option",
        "weights",
        `only names that belong to the attention of ${title} (a prefix chooses among several modules)`,
        `also ${list(left)}`,
      );
    }
  }
}

const FAMILIES: readonly WeightFamily[] = [pytorchFamily, gpt2Family, vitFamily, llamaFamily, bertFamily, kerasFamily];

/**
 * Reads weights by this package's own names or by those of a family.
 *
 * @param weights - An object or a Map of tensors.
 * @param prefix - Beginning of the names that belong to this layer.
 * @param layout - Order of the axes, where the caller says it.
 */
export function readWeights(weights: unknown, prefix: string, layout: WeightLayout | undefined): LayerParts {
  if (typeof weights !== "object" || weights === null) fail("dtype", "options.weights", "an object or a Map of tensors", String(weights));
  const entries =
    weights instanceof Map ? (weights as Map<string, unknown>) : Object.entries(weights).filter(([, value]) => value !== undefined);
  const names = new NamedWeights(entries, prefix);
  if (names.names.some((name) => /^w[qkvo]$/.test(name))) {
    const unknown = names.names.filter((name) => !WEIGHT_NAMES.includes(name));
    if (unknown.length > 0) fail("option", "weights", `only ${WEIGHT_NAMES.join(", ")}`, `also ${list(unknown)}`);
    const own: Record<string, unknown> = {};
    for (const [name, value] of entries) if (name.startsWith(prefix)) own[name.slice(prefix.length).replace(/^\./, "")] = value;
    return readOwnNames(own, layout ?? "out-in");
  }
  const family = FAMILIES.find((candidate) => candidate.fits(names));
  if (family === undefined) {
    const wanted = [
      `this package's own: ${WEIGHT_NAMES.join(", ")}`,
      ...FAMILIES.map(({ title, wanted: of }) => `${title}: ${of.join(", ")}`),
    ];
    const found =
      names.names.length === 0 ? `none${prefix === "" ? "" : ` that begins with ${JSON.stringify(prefix)}`}` : list(names.names);
    failWith("option", `weights: the names fit no family.\nFound: ${found}.\nExpected one of these:\n  ${wanted.join("\n  ")}`, {
      argument: "weights",
      expected: wanted.join("; "),
      got: found,
    });
  }
  const parts = family.read(names, layout);
  names.checkAllRead(family.ignored, family.title);
  return parts;
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 20).join(", ");
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : names.length === 0 ? "none" : shown;
}
