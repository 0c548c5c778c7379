/** Numbers and pictures to take along. */
import type { Run } from "./examples/stages.mjs";

/** Words on both axes; a hidden key is an empty field, because it is not a weight of 0. */
export function matrixAsCsv(run: Run, weights: Float32Array): string {
  const words = run.tokens.map((token) => quote(token.text));
  const rows = words.map((word, row) => {
    const numbers = words.map((_, column) => (run.causal && column > row ? "" : String(weights[row * words.length + column])));
    return [word, ...numbers].join(",");
  });
  return [["query \\ key", ...words].join(","), ...rows, ""].join("\r\n");
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Every stage with its shape and numbers, row-major; minus infinity (a hidden key) is null, which JSON can write. */
export function runAsJson(run: Run): string {
  const stages = Object.fromEntries(Object.entries(run.stages).map(([name, { shape, data }]) => [name, { shape, data: Array.from(data) }]));
  return JSON.stringify({ ...run, stages });
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    throw new Error("The browser does not let this page copy; save it instead.", { cause: error });
  }
}

export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser takes its time to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The picture with the page's own background: a canvas is transparent where nothing is drawn. */
export function pictureAsPng(canvas: HTMLCanvasElement, background: string): Promise<Blob> {
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const context = copy.getContext("2d") as CanvasRenderingContext2D;
  context.fillStyle = background;
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return new Promise((resolve, reject) => {
    copy.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser could not make a PNG of this picture."))), "image/png");
  });
}
