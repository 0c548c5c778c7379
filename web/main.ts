/** The page: state in, pictures out. Everything on it follows from the state (the address) and the run (the numbers). */
import { palette, weightScale, type Scale } from "./colours";
import { meanOfHeads } from "./examples/matrix.mjs";
import { describeHead, describeHeads, kHeadCounts } from "./examples/model.mjs";
import { nearestToOutput, runSentence, type Run } from "./examples/stages.mjs";
import { kMaxTokens } from "./examples/tokenize.mjs";
import { loadLive, messageOf, type Live } from "./live";
import { recordedNearest, recordedRun } from "./recorded";
import { allHeads, clampCell, formatHash, kSentence, parseHash, type Cell, type State } from "./state";
import { copyText, matrixAsCsv, pictureAsPng, runAsJson, saveFile } from "./take-away";
import { startTheme } from "./theme";
import { HeatMap } from "./views/heat-map";
import { buildHeads, paintHeads } from "./views/heads";
import { formatNumber } from "./views/numbers";
import { showReadout } from "./views/readout";
import { StagesView } from "./views/stages";
import { showFailure, showProgress, showReady } from "./views/status";
import { buildStrip, paintStrip } from "./views/strip";

const kSamples = [
  kSentence,
  "the river bank was wet after the rain, and the bank kept the money of the farmer",
  "the king and the queen live in a castle with cats and dogs",
  "time flies like an arrow; fruit flies like a banana",
];

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const sentenceInput = element<HTMLInputElement>("sentence");
const showSelect = element<HTMLSelectElement>("show");
const causalInput = element<HTMLInputElement>("causal");
const logInput = element<HTMLInputElement>("log");
const message = element("message");

let state: State = parseHash(location.hash);
let run: Run = recordedRun();
let live: Live | undefined;
/** What the matrix shows: one head or the mean of several. */
let weights: Float32Array = new Float32Array();
let scale: Scale;

const matrix = new HeatMap(element("matrix"), { maxCell: 54, colourBar: true, onPoint: chooseSoon });
const stages = new StagesView(element("steps"), (cell) => chooseSoon({ ...state.cell, ...cell }));

// ---- from the run to the page

/** The heads whose mean is shown. The recorded run may have another number of heads than the state asks for. */
function shownHeads(): readonly number[] {
  return state.numHeads === run.numHeads ? state.heads : allHeads(run.numHeads);
}

function isHidden(row: number, column: number): boolean {
  return run.causal && column > row;
}

function words(): string[] {
  return run.tokens.map((token) => token.text);
}

/** A new run: the number of words or heads may be another one. */
function showRun(): void {
  buildStrip(words(), (row) => chooseSoon({ ...state.cell, row }));
  buildHeads(run, { toggle: toggleHead, solo: (head) => update({ heads: [head] }) });
  showSelect.replaceChildren(
    new Option(`mean of all ${run.numHeads} heads`, "all"),
    ...allHeads(run.numHeads).map((head) => new Option(`head ${head + 1}: ${describeHead(head, run.numHeads)}`, String(head))),
  );
  showSelect.hidden = run.numHeads === 1;
  showTokens();
  showPictures();
}

/** Which words were not found, in so many words. */
function showTokens(): void {
  const list = (kind: string, format: (token: Run["tokens"][number]) => string) =>
    [...new Set(run.tokens.filter((token) => token.kind === kind).map(format))].join(", ");
  const standIns = list("stand-in", (token) => `“${token.text}” is looked up as “${token.word}”`);
  const unknown = list("unknown", (token) => `“${token.text}”`);
  const parts = [`${run.tokens.length} of at most ${kMaxTokens} words and signs.`];
  if (standIns) parts.push(`${standIns}.`);
  if (unknown) parts.push(`Unknown: ${unknown}; a vector made from the letters is used, which resembles no word.`);
  element("words").textContent = parts.join(" ");
}

function showPictures(): void {
  const heads = shownHeads();
  const colours = palette();
  weights = meanOfHeads(run.stages.weights, [...heads]);
  scale = weightScale(weights, state.logScale, colours.weights);
  const texts = words();
  const which = nameOfHeads(heads);
  matrix.show({
    values: weights,
    rows: texts.length,
    columns: texts.length,
    rowLabels: texts,
    columnLabels: texts,
    scale,
    hidden: run.causal ? isHidden : undefined,
    axes: { row: "query", column: "key" },
    caption: "row = query, column = key, rows sum to 1",
    name: `Attention weights, ${which}, row = query, column = key`,
    describe: ({ row, column }) =>
      isHidden(row, column)
        ? `“${texts[column]}” is hidden from “${texts[row]}”`
        : `“${texts[row]}” → “${texts[column]}”  ${formatNumber(weights[row * texts.length + column])}`,
  });
  element("attention-hint").textContent =
    `${sentenceCase(which)}. The stronger a cell, the more the word of its row looks at the word of its column.`;
  // A step has no mean: the steps are those of one head, the last of the heads above.
  const head = heads[heads.length - 1];
  element("steps-hint").textContent =
    `Shown for head ${head + 1}${heads.length > 1 ? ", the last of those above; choose one head to see its steps" : ""}. ${sentenceCase(describeHeads(run.numHeads))}.`;
  paintHeads(run, heads, state.logScale);
  stages.show(run, head, state.logScale);
  showControls();
  showChoice();
}

function sentenceCase(text: string): string {
  return text[0].toUpperCase() + text.slice(1);
}

function nameOfHeads(heads: readonly number[]): string {
  if (heads.length === 1) return `head ${heads[0] + 1}, which ${describeHead(heads[0], run.numHeads)}`;
  return heads.length === run.numHeads ? `mean of all ${heads.length} heads` : `mean of heads ${heads.map((head) => head + 1).join(", ")}`;
}

function showControls(): void {
  const heads = shownHeads();
  for (const input of document.querySelectorAll<HTMLInputElement>("#head-counts input"))
    input.checked = Number(input.value) === state.numHeads;
  showSelect.querySelector("[value=some]")?.remove();
  if (heads.length > 1 && heads.length < run.numHeads) showSelect.prepend(new Option(nameOfHeads(heads), "some"));
  showSelect.value = heads.length === run.numHeads ? "all" : heads.length > 1 ? "some" : String(heads[0]);
  causalInput.checked = state.causal;
  logInput.checked = state.logScale;
  if (sentenceInput.value !== state.sentence) sentenceInput.value = state.sentence;
}

/** The chosen cell, wherever it can be seen. */
function showChoice(): void {
  const cell = clampCell(state.cell, run.tokens.length);
  const { row, column } = cell;
  const texts = words();
  matrix.mark({ rows: [{ index: row, role: "query" }], columns: [{ index: column, role: "key" }], cell });
  paintStrip(row, weights.subarray(row * texts.length, (row + 1) * texts.length), scale, (other) => isHidden(row, other));
  showReadout(weights, texts, cell, isHidden(row, column));
  stages.choose(cell, live ? nearestToOutput(run, live.table, row) : recordedNearest[row]);
}

// ---- from the reader to the state

function update(change: Partial<State>): void {
  state = { ...state, ...change };
  saveState();
  if ("sentence" in change || "numHeads" in change || "causal" in change) compute();
  else showPictures();
}

function toggleHead(head: number): void {
  const shown = shownHeads();
  const heads = shown.includes(head) ? shown.filter((other) => other !== head) : [...shown, head].sort((a, b) => a - b);
  update({ heads: heads.length > 0 ? heads : allHeads(run.numHeads) });
}

let frame = 0;

/** Many cells can be pointed at within one frame; the last one counts. */
function chooseSoon(cell: Cell): void {
  state = { ...state, cell };
  saveState();
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(showChoice);
}

let timer: ReturnType<typeof setTimeout>;

/** Browsers refuse addresses that change with every movement of the mouse. */
function saveState(): void {
  clearTimeout(timer);
  timer = setTimeout(flushState, 250);
}

function flushState(): void {
  clearTimeout(timer);
  history.replaceState(undefined, "", formatHash(state) || location.pathname + location.search);
}

// ---- from the state to the run

function compute(): void {
  if (!live) {
    showControls(); // the state is kept, and computed as soon as it can be
    return;
  }
  try {
    run = runSentence(live.attn, live.table, state.sentence, { numHeads: state.numHeads, causal: state.causal });
    message.hidden = true;
    showReady(`Computed here in ${run.milliseconds.toFixed(1)} ms, with ${live.attn.variant} WebAssembly SIMD.`);
    showRun();
  } catch (error) {
    message.textContent = `${messageOf(error)} The picture below is that of the sentence before.`;
    message.hidden = false;
    showControls();
  }
}

async function start(): Promise<void> {
  try {
    live = await loadLive(showProgress);
    document.documentElement.dataset["live"] = "yes";
    compute();
  } catch (error) {
    showFailure(messageOf(error), () => void start());
  }
}

// ---- the controls

element("form").addEventListener("submit", (event) => event.preventDefault());
sentenceInput.addEventListener("input", () => update({ sentence: sentenceInput.value }));
causalInput.addEventListener("change", () => update({ causal: causalInput.checked }));
logInput.addEventListener("change", () => update({ logScale: logInput.checked }));
showSelect.addEventListener("change", () => {
  if (showSelect.value === "all") update({ heads: allHeads(run.numHeads) });
  else if (showSelect.value !== "some") update({ heads: [Number(showSelect.value)] });
});
addEventListener("hashchange", () => {
  state = parseHash(location.hash);
  compute();
});

for (const count of kHeadCounts) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  Object.assign(input, { type: "radio", name: "heads", value: String(count) });
  input.addEventListener("change", () => update({ numHeads: count, heads: allHeads(count) }));
  label.append(input, String(count));
  element("head-counts").append(label);
}

for (const sample of kSamples) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = sample;
  button.addEventListener("click", () => update({ sentence: sample }));
  element("samples").append(button);
}

/** Says under the buttons what came of a click. */
function onClick(id: string, done: string, action: () => Promise<void> | void): void {
  element(id).addEventListener("click", async () => {
    try {
      await action();
      element("exported").textContent = done;
    } catch (error) {
      element("exported").textContent = messageOf(error);
    }
  });
}

onClick("copy-link", "The link is copied; it restores what you see.", () => {
  flushState();
  return copyText(location.href);
});
onClick("copy-csv", "The matrix is copied as CSV.", () => copyText(matrixAsCsv(run, weights)));
onClick("save-json", "All numbers are saved as attention.json.", () =>
  saveFile("attention.json", new Blob([runAsJson(run)], { type: "application/json" })),
);
onClick("save-png", "The picture is saved as attention.png.", async () => {
  const background = getComputedStyle(document.body).getPropertyValue("--panel").trim();
  saveFile("attention.png", await pictureAsPng(matrix.canvas, background));
});

startTheme(element<HTMLButtonElement>("theme"), showPictures);
showRun();
void start();
