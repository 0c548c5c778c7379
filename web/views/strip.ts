/** The sentence as a row of words: the chosen one looks, the others are as dark as they are looked at. */
import { cssColour, inkOn, type Scale } from "../colours";

const strip = document.querySelector("#strip") as HTMLElement;

export function buildStrip(words: readonly string[], choose: (row: number) => void): void {
  strip.replaceChildren(
    ...words.map((word, row) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = word;
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") choose(row);
      });
      button.addEventListener("focus", () => choose(row));
      button.addEventListener("click", () => choose(row));
      return button;
    }),
  );
}

/** weights: the chosen row, one number per word. */
export function paintStrip(row: number, weights: ArrayLike<number>, scale: Scale, hidden: (column: number) => boolean): void {
  [...strip.children].forEach((child, column) => {
    const button = child as HTMLButtonElement;
    button.setAttribute("aria-pressed", String(column === row));
    button.classList.toggle("hidden-key", hidden(column));
    button.style.backgroundColor = hidden(column) ? "" : cssColour(scale, weights[column]);
    button.style.color = hidden(column) ? "" : inkOn(scale, weights[column]);
  });
}
