/** The numbers of the chosen cell and its row, as text. */
import { rowFacts } from "../examples/matrix.mjs";
import type { Cell } from "../state";
import { formatNumber } from "./numbers";

const readout = document.querySelector("#readout") as HTMLElement;

export function showReadout(weights: Float32Array, words: readonly string[], cell: Cell, hidden: boolean): void {
  const facts = rowFacts(weights, cell.row);
  let received = 0;
  for (let row = 0; row < words.length; row++) received += weights[row * words.length + cell.column];
  const heading = document.createElement("p");
  heading.className = "cell";
  heading.append(word(words[cell.row], "query"), hidden ? " can’t see " : " looks at ", word(words[cell.column], "key"));
  const number = document.createElement("p");
  number.className = "number";
  number.textContent = hidden ? "hidden" : formatNumber(weights[cell.row * words.length + cell.column]);
  const list = document.createElement("dl");
  const most = Math.log2(words.length);
  for (const [term, value] of [
    ["Row sum", facts.sum.toFixed(6)],
    ["Largest weight", `${formatNumber(facts.largest)} at “${words[facts.column]}”`],
    ["Entropy", `${facts.entropy.toFixed(2)} of ${most.toFixed(2)} bits`],
    ["Column sum", `${received.toFixed(2)} for “${words[cell.column]}”`],
  ]) {
    const dt = document.createElement("dt");
    dt.textContent = term;
    const dd = document.createElement("dd");
    dd.textContent = value;
    list.append(dt, dd);
  }
  readout.replaceChildren(heading, number, list);
}

function word(text: string, role: "query" | "key"): HTMLElement {
  const element = document.createElement("b");
  element.className = role;
  element.textContent = `“${text}”`;
  return element;
}
