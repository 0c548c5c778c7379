/**
 * A matrix as a picture on a canvas: one pixel per value, stretched, so that 1024 × 1024 values cost one drawImage. A second canvas
 * above carries what moves (marks and focus), so that hovering redraws no values.
 *
 * Pointer, touch and arrow keys all point at a cell; nothing here ever scrolls the page.
 */
import { byteAt, inkOn, palette, type Palette, type Scale } from "../colours";
import { layOut, type Layout } from "./heat-map-layout";
import { formatTick } from "./numbers";
import type { Cell } from "../state";

export type Role = "query" | "key" | "value";

export interface HeatMapContent {
  /** Row-major, rows × columns. */
  readonly values: ArrayLike<number>;
  readonly rows: number;
  readonly columns: number;
  readonly scale: Scale;
  readonly rowLabels: readonly string[];
  /** Without these the columns are numbered dimensions and carry no names. */
  readonly columnLabels?: readonly string[];
  /** A hidden cell is hatched, whatever its value. */
  readonly hidden?: ((row: number, column: number) => boolean) | undefined;
  /** Names of the axes, written on the picture in the colours of their roles. */
  readonly axes?: { readonly row: string; readonly column: string };
  /** Written under the picture, inside the canvas: it stays when the picture is saved. */
  readonly caption?: string;
  /** For those who don't see the picture. */
  readonly name: string;
  /** The sentence about a cell, shown beside it. */
  readonly describe: (cell: Cell) => string;
}

export interface Marks {
  readonly rows?: readonly { readonly index: number; readonly role: Role }[];
  readonly columns?: readonly { readonly index: number; readonly role: Role }[];
  readonly cell?: Cell | undefined;
}

export interface HeatMapOptions {
  readonly maxCell: number;
  readonly colourBar: boolean;
  /** Called for every cell pointed at. */
  readonly onPoint?: (cell: Cell) => void;
}

export class HeatMap {
  readonly #host: HTMLElement;
  readonly #options: HeatMapOptions;
  readonly #picture = document.createElement("canvas");
  readonly #overlay = document.createElement("canvas");
  readonly #tip = document.createElement("div");
  readonly #pixels = document.createElement("canvas");
  #content: HeatMapContent | undefined;
  #marks: Marks = {};
  #layout: Layout | undefined;
  #palette: Palette | undefined;
  #at: Cell = { row: 0, column: 0 };
  #width = 0;

  constructor(host: HTMLElement, options: HeatMapOptions) {
    this.#host = host;
    this.#options = options;
    host.classList.add("heat-map");
    this.#overlay.className = "overlay";
    this.#overlay.tabIndex = 0;
    this.#overlay.setAttribute("role", "application");
    this.#overlay.setAttribute("aria-roledescription", "heat map");
    this.#picture.setAttribute("aria-hidden", "true");
    this.#tip.className = "tip";
    this.#tip.hidden = true;
    this.#tip.setAttribute("role", "status");
    host.replaceChildren(this.#picture, this.#overlay, this.#tip);
    this.#listen();
    new ResizeObserver(() => {
      if (host.clientWidth !== this.#width) this.redraw();
    }).observe(host);
  }

  show(content: HeatMapContent): void {
    this.#content = content;
    this.#at = { row: Math.min(this.#at.row, content.rows - 1), column: Math.min(this.#at.column, content.columns - 1) };
    this.#overlay.setAttribute("aria-label", `${content.name}. Arrow keys move from cell to cell.`);
    this.#tip.hidden = true;
    this.redraw();
  }

  /** What is highlighted. A marked cell is also where the arrow keys go on from. */
  mark(marks: Marks): void {
    this.#marks = marks;
    if (marks.cell) this.#at = marks.cell;
    this.#drawOverlay();
  }

  /** The picture as it is drawn, without marks. */
  get canvas(): HTMLCanvasElement {
    return this.#picture;
  }

  /** Draws everything again: new content, another width, another theme. */
  redraw(): void {
    const content = this.#content;
    this.#width = this.#host.clientWidth;
    if (!content || this.#width === 0) return;
    this.#palette = palette();
    const context = this.#picture.getContext("2d") as CanvasRenderingContext2D;
    context.reset();
    context.font = fontOf(this.#host);
    this.#layout = layOut(content, this.#width, this.#options, (text) => context.measureText(text).width);
    this.#drawPicture(content, this.#layout, this.#palette);
    this.#drawOverlay();
  }

  #drawPicture(content: HeatMapContent, layout: Layout, colours: Palette): void {
    const context = size(this.#picture, layout.width, layout.height);
    context.font = fontOf(this.#host);
    const { left, top, plotWidth, plotHeight } = layout;
    this.#fillPixels(content);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.#pixels, left, top, plotWidth, plotHeight);
    if (content.hidden) drawHatching(context, content, layout, colours.hatch);
    if (layout.cellHeight >= 7 && layout.cellWidth >= 7) drawGrid(context, content, layout, getBackground(this.#host));
    if (layout.numbers) drawNumbers(context, content, layout);
    drawLabels(context, content, layout, colours);
    if (this.#options.colourBar) drawColourBar(context, content, layout, colours);
  }

  #fillPixels(content: HeatMapContent): void {
    const { rows, columns, values, scale, hidden } = content;
    this.#pixels.width = columns;
    this.#pixels.height = rows;
    const context = this.#pixels.getContext("2d") as CanvasRenderingContext2D;
    const image = context.createImageData(columns, rows);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        if (hidden?.(row, column)) continue; // stays transparent
        const from = byteAt(scale, values[i]) * 3;
        image.data[i * 4] = scale.lut[from];
        image.data[i * 4 + 1] = scale.lut[from + 1];
        image.data[i * 4 + 2] = scale.lut[from + 2];
        image.data[i * 4 + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  #drawOverlay(): void {
    const layout = this.#layout;
    const colours = this.#palette;
    if (!layout || !colours) return;
    const context = size(this.#overlay, layout.width, layout.height);
    const { left, top, cellWidth, cellHeight, plotWidth, plotHeight } = layout;
    const frame = (x: number, y: number, width: number, height: number, colour: string) => {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, width + 2, height + 2);
    };
    for (const { index, role } of this.#marks.rows ?? []) {
      frame(left, top + index * cellHeight, plotWidth, cellHeight, colours[role]);
      context.fillStyle = colours[role];
      context.fillRect(left - 5, top + index * cellHeight, 3, cellHeight);
    }
    for (const { index, role } of this.#marks.columns ?? []) {
      frame(left + index * cellWidth, top, cellWidth, plotHeight, colours[role]);
      context.fillStyle = colours[role];
      context.fillRect(left + index * cellWidth, top - 5, cellWidth, 3);
    }
    const { cell } = this.#marks;
    if (cell) frame(left + cell.column * cellWidth, top + cell.row * cellHeight, cellWidth, cellHeight, colours.ink);
  }

  #listen(): void {
    const overlay = this.#overlay;
    overlay.addEventListener("pointermove", (event) => {
      // A finger that moves is scrolling the page.
      if (event.pointerType !== "touch") this.#pointAt(this.#cellUnder(event));
    });
    overlay.addEventListener("pointerdown", (event) => this.#pointAt(this.#cellUnder(event)));
    overlay.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.#tip.hidden = true;
    });
    overlay.addEventListener("focus", () => {
      // A click focuses too, and has already said which cell; only the keyboard needs to be told where it is.
      if (overlay.matches(":focus-visible")) this.#pointAt(this.#at);
    });
    overlay.addEventListener("blur", () => {
      this.#tip.hidden = true;
    });
    overlay.addEventListener("keydown", (event) => this.#onKey(event));
  }

  #onKey(event: KeyboardEvent): void {
    const content = this.#content;
    if (!content || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") {
      this.#tip.hidden = true;
      return;
    }
    const { row, column } = this.#at;
    const target: Record<string, Cell> = {
      ArrowUp: { row: row - 1, column },
      ArrowDown: { row: row + 1, column },
      ArrowLeft: { row, column: column - 1 },
      ArrowRight: { row, column: column + 1 },
      Home: { row, column: 0 },
      End: { row, column: content.columns - 1 },
      PageUp: { row: 0, column },
      PageDown: { row: content.rows - 1, column },
    };
    const next = target[event.key];
    if (!next) return;
    event.preventDefault(); // else the page scrolls
    this.#pointAt({
      row: Math.max(0, Math.min(content.rows - 1, next.row)),
      column: Math.max(0, Math.min(content.columns - 1, next.column)),
    });
  }

  #cellUnder(event: PointerEvent): Cell | undefined {
    const layout = this.#layout;
    const content = this.#content;
    if (!layout || !content) return undefined;
    const box = this.#overlay.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - layout.left) / layout.cellWidth);
    const row = Math.floor((event.clientY - box.top - layout.top) / layout.cellHeight);
    return row >= 0 && column >= 0 && row < content.rows && column < content.columns ? { row, column } : undefined;
  }

  #pointAt(cell: Cell | undefined): void {
    const content = this.#content;
    const layout = this.#layout;
    if (!cell || !content || !layout) {
      this.#tip.hidden = true;
      return;
    }
    this.#at = cell;
    this.#tip.textContent = content.describe(cell);
    this.#tip.hidden = false;
    this.#options.onPoint?.(cell);
    this.#placeTip(cell, layout);
  }

  /** Above the cell, or below it where there is no room; never beyond the picture's sides, where it would make the page scroll. */
  #placeTip(cell: Cell, layout: Layout): void {
    const middle = layout.left + (cell.column + 0.5) * layout.cellWidth;
    const x = Math.max(0, Math.min(this.#width - this.#tip.offsetWidth, middle - this.#tip.offsetWidth / 2));
    const above = layout.top + cell.row * layout.cellHeight - this.#tip.offsetHeight - 8;
    const y = above >= 0 ? above : layout.top + (cell.row + 1) * layout.cellHeight + 8;
    this.#tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }
}

/** Sets a canvas to a size in CSS pixels, sharp on this screen, cleared. */
function size(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  // Setting a size, even the same one, makes the browser take new memory, at every movement of the mouse.
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
  } else {
    context.reset();
  }
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.scale(ratio, ratio);
  return context;
}

function fontOf(element: HTMLElement): string {
  return `12px ${getComputedStyle(element).fontFamily}`;
}

function getBackground(element: HTMLElement): string {
  return getComputedStyle(element).getPropertyValue("--panel").trim();
}

/** Hidden keys: diagonal lines on nothing, unlike any colour of the scale. */
function drawHatching(context: CanvasRenderingContext2D, content: HeatMapContent, layout: Layout, colour: string): void {
  const tile = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  const step = 6;
  const pen = size(tile, step, step);
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const shift of [-step, 0, step]) {
    pen.moveTo(shift - 1, step + 1);
    pen.lineTo(shift + step + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (!pattern) return;
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  const area = new Path2D();
  for (let row = 0; row < content.rows; row++) {
    for (let column = 0; column < content.columns; column++) {
      if (!content.hidden?.(row, column)) continue;
      const first = column;
      while (column + 1 < content.columns && content.hidden(row, column + 1)) column++;
      area.rect(
        layout.left + first * layout.cellWidth,
        layout.top + row * layout.cellHeight,
        (column - first + 1) * layout.cellWidth,
        layout.cellHeight,
      );
    }
  }
  context.fillStyle = pattern;
  context.fill(area);
}

function drawGrid(context: CanvasRenderingContext2D, content: HeatMapContent, layout: Layout, colour: string): void {
  const { left, top, cellWidth, cellHeight, plotWidth, plotHeight } = layout;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let row = 1; row < content.rows; row++) {
    context.moveTo(left, top + row * cellHeight);
    context.lineTo(left + plotWidth, top + row * cellHeight);
  }
  if (content.columnLabels) {
    for (let column = 1; column < content.columns; column++) {
      context.moveTo(left + column * cellWidth, top);
      context.lineTo(left + column * cellWidth, top + plotHeight);
    }
  }
  context.stroke();
}

function drawNumbers(context: CanvasRenderingContext2D, content: HeatMapContent, layout: Layout): void {
  context.save();
  context.font = context.font.replace("12px", "11px");
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < content.rows; row++) {
    for (let column = 0; column < content.columns; column++) {
      if (content.hidden?.(row, column)) continue;
      const value = content.values[row * content.columns + column];
      context.fillStyle = inkOn(content.scale, value);
      context.globalAlpha = value < 0.005 ? 0.35 : 1;
      context.fillText(
        value.toFixed(2).replace(/^0\./, "."),
        layout.left + (column + 0.5) * layout.cellWidth,
        layout.top + (row + 0.5) * layout.cellHeight + 1,
      );
    }
  }
  context.restore();
}

function drawLabels(context: CanvasRenderingContext2D, content: HeatMapContent, layout: Layout, colours: Palette): void {
  const { left, top, cellWidth, cellHeight } = layout;
  context.fillStyle = colours.ink;
  context.textBaseline = "middle";
  context.textAlign = "right";
  layout.rowTexts.forEach((text, row) => {
    context.fillText(text, left - 8, top + (row + 0.5) * cellHeight + 1);
  });
  context.textAlign = layout.columnAngle === 0 ? "center" : "left";
  layout.columnTexts.forEach((text, column) => {
    context.save();
    context.translate(left + (column + 0.5) * cellWidth + 1, top - 8);
    context.rotate(layout.columnAngle);
    context.fillText(text, 0, layout.columnAngle === 0 ? -2 : 0);
    context.restore();
  });
  if (content.axes) {
    context.font = `600 ${context.font}`;
    context.textAlign = "left";
    context.fillStyle = colours.key;
    context.fillText(`${content.axes.column} →`, left, layout.columnTexts.length > 0 ? 9 : top - 12);
    context.textAlign = "right";
    context.fillStyle = colours.query;
    context.fillText(`${content.axes.row} ↓`, left - 8, top - 12);
    context.font = context.font.replace("600 ", "");
  }
}

function drawColourBar(context: CanvasRenderingContext2D, content: HeatMapContent, layout: Layout, colours: Palette): void {
  const { scale, caption } = content;
  const { left, barTop, barWidth } = layout;
  const [first, last] = [scale.ticks[0], scale.ticks[scale.ticks.length - 1]];
  // The bar runs over the colours, so a tick stands where its value has its colour, also on a logarithmic scale.
  for (let x = 0; x < barWidth; x++) {
    const from = Math.round((x / (barWidth - 1)) * 255) * 3;
    context.fillStyle = `rgb(${scale.lut[from]} ${scale.lut[from + 1]} ${scale.lut[from + 2]})`;
    context.fillRect(left + x, barTop, 1, 9);
  }
  context.strokeStyle = colours.line;
  context.strokeRect(left - 0.5, barTop - 0.5, barWidth + 1, 10);
  context.fillStyle = colours.quiet;
  context.textBaseline = "top";
  for (const tick of scale.ticks) {
    context.textAlign = tick === first ? "left" : tick === last ? "right" : "center";
    context.fillText(formatTick(tick), left + scale.at(tick) * barWidth, barTop + 14);
  }
  if (caption !== undefined) {
    context.textAlign = "left";
    context.fillText(caption, layout.captionLeft, barTop + 34);
  }
}
