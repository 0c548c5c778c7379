/**
 * A matrix of weights as text: row = query, column = key, words on both axes, darker = larger.
 * Width decides how much of it is said: numbers and shades, shades alone, or shades in blocks of columns.
 */

// Light to dark, and safe for colour-blind eyes: steps of the 256-colour cube whose brightness falls evenly.
const kColours = [231, 195, 153, 117, 81, 75, 69, 63, 57, 56, 55, 54];
const kShades = [" ", "░", "▒", "▓", "█"];
const kLabelWidth = 12;

/**
 * @param {Float32Array} weights [tokens.length, tokens.length]
 * @param {string[]} tokens
 * @param {{ width: number, colour: boolean, causal: boolean }} options width in characters
 * @returns {string}
 */
export function drawMatrix(weights, tokens, { width, colour, causal }) {
  const labelWidth = Math.min(kLabelWidth, Math.max(...tokens.map(cellsOf)));
  const sumWidth = 11;
  const room = Math.max(10, width - labelWidth - 1 - sumWidth);
  const withNumbers = tokens.length * 4 <= room;
  const cellWidth = withNumbers ? Math.min(6, Math.floor(room / tokens.length)) : tokens.length * 2 <= room ? 2 : 1;
  const perBlock = Math.floor(room / cellWidth);
  const largest = weights.reduce((a, b) => Math.max(a, b), 0);
  const lines = [];
  for (let first = 0; first < tokens.length; first += perBlock) {
    const columns = tokens.slice(first, first + perBlock).map((_, i) => first + i);
    const last = first + columns.length === tokens.length;
    if (first > 0) lines.push("", `columns ${first + 1} to ${first + columns.length}:`);
    lines.push(
      ...columnHeadings(
        columns.map((column) => tokens[column]),
        cellWidth,
        labelWidth,
      ),
    );
    tokens.forEach((token, row) => {
      const cells = columns.map((column) =>
        causal && column > row
          ? paintHidden(cellWidth, colour)
          : paint(weights[row * tokens.length + column], largest, cellWidth, withNumbers, colour),
      );
      const sum = last ? `  ${rowSum(weights, row, tokens.length).toFixed(6)}` : "";
      lines.push(`${pad(token, labelWidth)} ${cells.join("")}${sum}`);
    });
  }
  lines.push("", legend(largest, { withNumbers, colour, causal }));
  return lines.join("\n");
}

/** @param {Float32Array} weights @param {number} row @param {number} seqLen */
function rowSum(weights, row, seqLen) {
  let sum = 0;
  for (let column = 0; column < seqLen; column++) sum += weights[row * seqLen + column];
  return sum;
}

/** The words above the columns: side by side where all fit, else written downwards. @param {string[]} words @param {number} cellWidth @param {number} labelWidth */
function columnHeadings(words, cellWidth, labelWidth) {
  const indent = " ".repeat(labelWidth + 1);
  if (words.every((word) => cellsOf(word) < cellWidth)) return [indent + words.map((word) => pad(word, cellWidth, "start")).join("")];
  const letters = words.map((word) => [...fit(word, kLabelWidth)]);
  const height = Math.max(...letters.map((list) => list.length));
  return Array.from({ length: height }, (_, line) => {
    const cells = letters.map((list) => pad(list[line - (height - list.length)] ?? "", cellWidth, "start"));
    return (indent + cells.join("")).trimEnd();
  });
}

/** @param {number} weight @param {number} largest @param {number} cellWidth @param {boolean} withNumber @param {boolean} colour */
function paint(weight, largest, cellWidth, withNumber, colour) {
  const share = largest > 0 ? weight / largest : 0;
  const number = withNumber ? (weight * 100).toFixed(0).padStart(3) : "";
  if (colour) {
    const step = Math.min(kColours.length - 1, Math.floor(share * kColours.length));
    const ink = step < 6 ? 16 : 231;
    return `\u001b[48;5;${kColours[step]}m\u001b[38;5;${ink}m${number.padStart(cellWidth - 1).padEnd(cellWidth)}\u001b[0m`;
  }
  const shade = kShades[Math.min(kShades.length - 1, Math.ceil(share * 4 - 0.125))];
  return withNumber ? `${number.padStart(cellWidth - 1)}${shade}` : shade.repeat(cellWidth);
}

/** A hidden key is not a weight of 0, and must not look like one. @param {number} cellWidth @param {boolean} colour */
function paintHidden(cellWidth, colour) {
  const text = "·".padStart(Math.ceil(cellWidth / 2)).padEnd(cellWidth);
  return colour ? `\u001b[2m${text}\u001b[0m` : text;
}

/** @param {number} largest @param {{ withNumbers: boolean, colour: boolean, causal: boolean }} options */
function legend(largest, { withNumbers, colour, causal }) {
  const bar = colour
    ? kColours.map((code) => `\u001b[48;5;${code}m  \u001b[0m`).join("")
    : kShades.map((shade) => shade.repeat(2)).join("");
  const parts = [`0 ${bar} ${largest.toFixed(3)}`];
  if (withNumbers) parts.push("numbers are hundredths");
  if (causal) parts.push("· is hidden");
  parts.push("right: row sum");
  return parts.join("   ");
}

/** Columns that a text takes in a terminal: pictures and Chinese, Japanese and Korean letters take two. @param {string} text */
function cellsOf(text) {
  let cells = 0;
  for (const character of text) cells += widthOf(character);
  return cells;
}

/** @param {string} character */
function widthOf(character) {
  if (/\p{M}|\u200d|\ufe0f/u.test(character)) return 0;
  return /[\p{Extended_Pictographic}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(character) ? 2 : 1;
}

/** @param {string} text @param {number} width */
function fit(text, width) {
  if (cellsOf(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (cellsOf(kept) + widthOf(character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** @param {string} text @param {number} width @param {"start" | "end"} [side] where the blanks go */
function pad(text, width, side = "end") {
  const fitted = fit(text, width);
  const blanks = " ".repeat(Math.max(0, width - cellsOf(fitted)));
  return side === "start" ? blanks + fitted : fitted + blanks;
}
