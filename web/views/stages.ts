/** The seven steps, one below the other: formula, shape, what to look for, picture, and the numbers of the chosen word. */
import { palette, signedScale, weightScale } from "../colours";
import { kPositionDim, kWordDim } from "../examples/model.mjs";
import { kStages, type Run, type StageName } from "../examples/stages.mjs";
import type { Cell } from "../state";
import { HeatMap, type HeatMapContent, type Marks } from "./heat-map";
import { formatNumber, formatShape } from "./numbers";

const kSquare: readonly StageName[] = ["scores", "scaledScores", "maskedScores", "weights"];
// What belongs together stands side by side, where there is room.
const kRows: readonly { readonly title: string; readonly stages: readonly StageName[] }[] = [
  { title: "Look the words up", stages: ["input"] },
  { title: "Project", stages: ["query", "key", "value"] },
  { title: "Score, scale, softmax", stages: kSquare },
  { title: "Weighted sum", stages: ["context"] },
  { title: "Join the heads", stages: ["joined"] },
  { title: "Project back", stages: ["output"] },
];

interface Panel {
  readonly map: HeatMap;
  readonly shape: HTMLElement;
  readonly numbers: HTMLDetailsElement;
}

export class StagesView {
  readonly #panels = new Map<StageName, Panel>();
  readonly #nearest = document.createElement("p");
  #run: Run | undefined;
  #head = 0;
  #cell: Cell = { row: 0, column: 0 };

  constructor(list: HTMLElement, choose: (cell: Partial<Cell>) => void) {
    this.#nearest.className = "nearest";
    list.append(...kRows.map(({ title, stages }) => this.#buildRow(title, stages, choose)));
  }

  /** Draws all stages of a run; those that exist per head are drawn for `head`. */
  show(run: Run, head: number, logScale: boolean): void {
    this.#run = run;
    this.#head = head;
    const colours = palette();
    for (const [name, panel] of this.#panels) {
      const matrix = this.#matrixOf(name);
      const scale = name === "weights" ? weightScale(matrix.values, logScale, colours.weights) : signedScale(matrix.values, colours.signed);
      panel.map.show({ ...matrix, scale });
      const { perHead } = kStages[name];
      panel.shape.textContent = `${formatShape(run.stages[name].shape)}${perHead ? `, head ${head + 1} of ${run.numHeads}` : ""}`;
    }
  }

  /** The chosen query row and key column, in every picture where they are. */
  choose(cell: Cell, nearest: readonly string[]): void {
    this.#cell = cell;
    for (const [name, panel] of this.#panels) {
      panel.map.mark(marksOf(name, cell));
      this.#fillNumbers(name, panel);
    }
    const run = this.#run;
    if (!run) return;
    const words = nearest.map((text) => `“${text}”`).join(", ");
    this.#nearest.textContent = `Nearest words to the output of “${run.tokens[cell.row].text}”: ${words}.`;
  }

  redraw(): void {
    for (const { map } of this.#panels.values()) map.redraw();
  }

  #buildRow(title: string, stages: readonly StageName[], choose: (cell: Partial<Cell>) => void): HTMLElement {
    const item = document.createElement("li");
    const heading = document.createElement("h3");
    const steps = [...new Set(stages.map((name) => kStages[name].step))].filter((step) => step > 0);
    heading.append(...steps.map(stepNumber), title);
    const panels = document.createElement("div");
    panels.className = "panels";
    panels.dataset["count"] = String(stages.length);
    panels.append(...stages.map((name) => this.#buildPanel(name, choose)));
    item.append(heading, panels);
    if (stages.includes("output")) item.append(this.#nearest);
    return item;
  }

  #buildPanel(name: StageName, choose: (cell: Partial<Cell>) => void): HTMLElement {
    const { title, formula, hint } = kStages[name];
    const figure = document.createElement("figure");
    figure.dataset["stage"] = name;
    const caption = document.createElement("figcaption");
    const heading = document.createElement("b");
    heading.textContent = title;
    if (kSquare.includes(name)) heading.prepend(`${kStages[name].step} `);
    if (name === "query" || name === "key" || name === "value") heading.className = name;
    const code = document.createElement("code");
    code.textContent = formula;
    const shape = document.createElement("span");
    shape.className = "shape";
    const text = document.createElement("p");
    text.textContent = hint;
    caption.append(heading, code, shape, text);
    const host = document.createElement("div");
    const numbers = document.createElement("details");
    numbers.innerHTML = "<summary></summary><p class='values'></p>";
    figure.append(caption, host, numbers);
    // In K and V a row is a key, in scores and weights a column is one too.
    const onPoint = (cell: Cell) =>
      choose(kSquare.includes(name) ? cell : name === "key" || name === "value" ? { column: cell.row } : { row: cell.row });
    const panel = { map: new HeatMap(host, { maxCell: 30, colourBar: true, onPoint }), shape, numbers };
    numbers.addEventListener("toggle", () => this.#fillNumbers(name, panel));
    this.#panels.set(name, panel);
    return figure;
  }

  #matrixOf(name: StageName): Omit<HeatMapContent, "scale"> {
    const run = this.#run as Run;
    const { data, shape } = run.stages[name];
    const rows = run.tokens.length;
    const columns = shape[shape.length - 1];
    const from = kStages[name].perHead ? this.#head * rows * columns : 0;
    const values = data.subarray(from, from + rows * columns);
    const words = run.tokens.map((token) => token.text);
    const isSquare = kSquare.includes(name);
    const where = kStages[name].perHead ? `, head ${this.#head + 1}` : "";
    return {
      values,
      rows,
      columns,
      rowLabels: words,
      name: `${kStages[name].title}${where}`,
      hidden: run.causal && (name === "maskedScores" || name === "weights") ? (row, column) => column > row : undefined,
      ...(isSquare ? { columnLabels: words, axes: { row: "query", column: "key" } } : {}),
      describe: ({ row, column }) => {
        const value = formatNumber(values[row * columns + column]);
        if (isSquare) return `“${words[row]}” → “${words[column]}”  ${value}`;
        return `“${words[row]}”, ${nameOfDimension(name, column, run.headDim)}  ${value}`;
      },
    };
  }

  /** The chosen word's numbers, written only while they can be seen. */
  #fillNumbers(name: StageName, { numbers }: Panel): void {
    const run = this.#run;
    if (!run) return;
    const row = name === "key" || name === "value" ? this.#cell.column : this.#cell.row;
    const matrix = this.#matrixOf(name);
    (numbers.firstElementChild as HTMLElement).textContent = `${matrix.columns} numbers of “${run.tokens[row].text}”`;
    if (!numbers.open) return;
    const values = Array.from({ length: matrix.columns }, (_, column) => formatNumber(matrix.values[row * matrix.columns + column]));
    (numbers.lastElementChild as HTMLElement).textContent = values.join("  ");
  }
}

function stepNumber(step: number): HTMLElement {
  const number = document.createElement("span");
  number.className = "step-number";
  number.textContent = String(step);
  return number;
}

function nameOfDimension(name: StageName, column: number, headDim: number): string {
  if (name === "input" || name === "output") {
    return column < kWordDim ? `word number ${column + 1} of ${kWordDim}` : `position number ${column - kWordDim + 1} of ${kPositionDim}`;
  }
  if (name === "joined") return `head ${Math.floor(column / headDim) + 1}, number ${(column % headDim) + 1}`;
  return `number ${column + 1} of ${headDim}`;
}

function marksOf(name: StageName, { row, column }: Cell): Marks {
  if (kSquare.includes(name)) {
    return { rows: [{ index: row, role: "query" }], columns: [{ index: column, role: "key" }], cell: { row, column } };
  }
  if (name === "key") return { rows: [{ index: column, role: "key" }] };
  if (name === "value") return { rows: [{ index: column, role: "value" }] };
  return { rows: [{ index: row, role: "query" }] };
}
