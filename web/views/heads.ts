/** Every head as a small picture. A click adds or removes it, a double click shows it alone. */
import { byteAt, palette, weightScale } from "../colours";
import { describeHead } from "../examples/model.mjs";
import type { Run } from "../examples/stages.mjs";

const list = document.querySelector("#heads") as HTMLElement;

export interface HeadActions {
  readonly toggle: (head: number) => void;
  readonly solo: (head: number) => void;
}

export function buildHeads(run: Run, actions: HeadActions): void {
  list.replaceChildren(
    ...Array.from({ length: run.numHeads }, (_, head) => {
      const button = document.createElement("button");
      button.type = "button";
      const label = document.createElement("span");
      label.innerHTML = `<b>Head ${head + 1}</b> ${describeHead(head, run.numHeads)}`;
      button.append(document.createElement("canvas"), label);
      button.addEventListener("click", () => actions.toggle(head));
      button.addEventListener("dblclick", () => actions.solo(head));
      return button;
    }),
  );
}

export function paintHeads(run: Run, shown: readonly number[], logScale: boolean): void {
  const { data, shape } = run.stages.weights;
  const seqLen = shape[1];
  const { weights } = palette();
  [...list.children].forEach((button, head) => {
    button.setAttribute("aria-pressed", String(shown.includes(head)));
    const canvas = button.querySelector("canvas") as HTMLCanvasElement;
    canvas.width = canvas.height = seqLen;
    // Sharp squares while they are large; where many share a pixel of the screen, picking one of them would lose the rest.
    canvas.style.imageRendering = seqLen > 60 ? "auto" : "";
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const image = context.createImageData(seqLen, seqLen);
    const values = data.subarray(head * seqLen * seqLen, (head + 1) * seqLen * seqLen);
    const scale = weightScale(values, logScale, weights);
    values.forEach((value, i) => {
      // A hidden key stays transparent: not the colour of 0.
      if (run.causal && i % seqLen > Math.floor(i / seqLen)) return;
      const from = byteAt(scale, value) * 3;
      image.data.set([scale.lut[from], scale.lut[from + 1], scale.lut[from + 2], 255], i * 4);
    });
    context.putImageData(image, 0, 0);
  });
}
