/** Numbers as the page writes them. */

/** Four digits that matter, a real minus sign, and no exponent for the usual sizes. */
export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = size !== 0 && size < 1e-4 ? value.toExponential(2) : value.toFixed(size < 10 ? 4 : size < 1000 ? 2 : 0);
  return text.replaceAll("-", "−");
}

/** As short as a colour bar needs it. */
export function formatTick(value: number): string {
  const size = Math.abs(value);
  const text =
    size < 1e-4 && size > 0 ? value.toExponential(0) : size < 1 ? String(Number(value.toPrecision(2))) : value.toFixed(size < 10 ? 1 : 0);
  return text.replaceAll("-", "−");
}

export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}
