/** Where everything of a heat map goes, in CSS pixels. Pure arithmetic: no canvas, no document. */

export interface Layout {
  readonly width: number;
  readonly height: number;
  /** The corner of the first cell. */
  readonly left: number;
  readonly top: number;
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly plotWidth: number;
  readonly plotHeight: number;
  /** Whether the cells are large enough for their numbers. */
  readonly numbers: boolean;
  /** Shortened to fit; empty where there is no room for words. */
  readonly rowTexts: readonly string[];
  readonly columnTexts: readonly string[];
  /** Radians. */
  readonly columnAngle: number;
  readonly barTop: number;
  readonly barWidth: number;
  readonly captionLeft: number;
}

export interface LayoutInput {
  readonly rows: number;
  readonly columns: number;
  readonly rowLabels: readonly string[];
  readonly columnLabels?: readonly string[];
  readonly axes?: { readonly row: string; readonly column: string };
  readonly caption?: string;
}

const kSmallestLabelled = 10; // below this, words would overlap

export function layOut(
  content: LayoutInput,
  width: number,
  { maxCell, colourBar }: { readonly maxCell: number; readonly colourBar: boolean },
  measure: (text: string) => number,
): Layout {
  const { rows, columns, columnLabels } = content;
  const square = columnLabels !== undefined;
  const wide = width >= 520;
  const widest = (labels: readonly string[]) => labels.reduce((most, text) => Math.max(most, measure(text)), 0);

  // A first guess of the cell decides whether there are words at all; the words then take their room from the cells.
  const guess = square ? (width - 60) / columns : rowHeight(rows);
  const labelled = guess >= kSmallestLabelled;
  // The heading of the axis stands over the words, and is bold.
  const headingRoom = content.axes ? 1.15 * measure(`${content.axes.row} ↓`) : 0;
  const labelRoom = Math.max(headingRoom, labelled ? Math.min(widest(content.rowLabels), wide ? 110 : 72) : 0);
  const left = Math.ceil(labelRoom + (labelRoom > 0 ? 14 : 6));

  const columnRoom = labelled && square ? Math.min(widest(columnLabels), wide ? 110 : 72) : 0;
  // Slanted words lean to the right, over the edge of the last column.
  const slanted = wide && labelled && square;
  const right = slanted ? Math.ceil(columnRoom * 0.62) : 6;
  const available = width - left - right;
  const cellWidth = square ? Math.min(maxCell, available / columns) : available / columns;
  const cellHeight = square ? cellWidth : rowHeight(rows);
  const horizontal = columnRoom + 8 <= cellWidth;
  const columnAngle = horizontal ? 0 : slanted ? -Math.PI / 4 : -Math.PI / 2;
  const columnHeight = columnRoom === 0 ? 0 : horizontal ? 14 : Math.ceil(columnRoom * (slanted ? 0.75 : 1)) + 4;
  const top = columnHeight + (content.axes ? 26 : 8);

  const plotWidth = cellWidth * columns;
  const plotHeight = cellHeight * rows;
  const barTop = top + plotHeight + 14;
  const barWidth = Math.max(1, Math.round(Math.min(plotWidth, 320)));
  const barHeight = colourBar ? 42 + (content.caption === undefined ? 0 : 20) : 4;
  return {
    width,
    left,
    top,
    cellWidth,
    cellHeight,
    plotWidth,
    plotHeight,
    columnAngle,
    barTop,
    barWidth,
    height: Math.ceil(top + plotHeight + barHeight),
    numbers: square && colourBar && cellWidth >= 32,
    rowTexts: labelled ? content.rowLabels.map((text) => shorten(text, labelRoom, measure)) : [],
    columnTexts: columnRoom > 0 && columnLabels ? columnLabels.map((text) => shorten(text, columnRoom, measure)) : [],
    // The caption is longer than a narrow picture's plot.
    captionLeft:
      content.caption !== undefined && left + measure(content.caption) > width ? Math.max(0, width - measure(content.caption)) : left,
  };
}

/** Rows of a matrix whose columns are dimensions: as high as text where they are few, thin where they are many. */
function rowHeight(rows: number): number {
  return Math.max(1.5, Math.min(16, 320 / rows));
}

function shorten(text: string, room: number, measure: (text: string) => number): string {
  if (measure(text) <= room + 0.5) return text;
  const characters = [...text];
  while (characters.length > 1 && measure(`${characters.join("")}…`) > room) characters.pop();
  return `${characters.join("")}…`;
}
