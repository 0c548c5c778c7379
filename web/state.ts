/** What the page shows, and how it stands in the address: a link restores it. */
import { kHeadCounts } from "./examples/model.mjs";

export interface Cell {
  readonly row: number;
  readonly column: number;
}

export interface State {
  readonly sentence: string;
  readonly numHeads: number;
  /** Heads whose mean is shown, ascending, never empty. */
  readonly heads: readonly number[];
  readonly causal: boolean;
  readonly logScale: boolean;
  /** The cell that is looked at. It may lie outside the matrix when the sentence became shorter: see clampCell. */
  readonly cell: Cell;
}

export const kSentence = "the animal did not cross the street because it was too tired";

export function allHeads(numHeads: number): number[] {
  return Array.from({ length: numHeads }, (_, head) => head);
}

export const kDefaultState: State = {
  sentence: kSentence,
  numHeads: 4,
  heads: allHeads(4),
  causal: false,
  logScale: false,
  cell: { row: 11, column: 1 },
};

/** Anything that does not fit is taken as not given: an old or mistyped link still opens. */
export function parseHash(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const numHeads = kHeadCounts.find((count) => String(count) === given.get("heads")) ?? kDefaultState.numHeads;
  const wanted = (given.get("show") ?? "").split(",").map((head) => Number(head) - 1);
  const heads = allHeads(numHeads).filter((head) => wanted.includes(head));
  const at = /^(\d+),(\d+)$/.exec(given.get("at") ?? "");
  return {
    sentence: given.get("s") ?? kDefaultState.sentence,
    numHeads,
    heads: heads.length > 0 ? heads : allHeads(numHeads),
    causal: given.get("causal") === "1",
    logScale: given.get("log") === "1",
    cell: at ? { row: Number(at[1]) - 1, column: Number(at[2]) - 1 } : kDefaultState.cell,
  };
}

/** Only what differs from the default, with words and heads counted from 1 as on the page. */
export function formatHash(state: State): string {
  const parts = new URLSearchParams();
  if (state.sentence !== kDefaultState.sentence) parts.set("s", state.sentence);
  if (state.numHeads !== kDefaultState.numHeads) parts.set("heads", String(state.numHeads));
  if (state.heads.length < state.numHeads) parts.set("show", state.heads.map((head) => head + 1).join(","));
  if (state.causal) parts.set("causal", "1");
  if (state.logScale) parts.set("log", "1");
  const { cell } = state;
  if (cell.row !== kDefaultState.cell.row || cell.column !== kDefaultState.cell.column) {
    parts.set("at", `${cell.row + 1},${cell.column + 1}`);
  }
  const text = parts.toString();
  return text === "" ? "" : `#${text}`;
}

/** The nearest cell inside a matrix of seqLen × seqLen. */
export function clampCell(cell: Cell, seqLen: number): Cell {
  const clamp = (index: number) => Math.max(0, Math.min(seqLen - 1, index));
  return { row: clamp(cell.row), column: clamp(cell.column) };
}
