/** Arithmetic on sizes, done in doubles: exact far beyond what memory holds, so nothing wraps round at 2^31 or 2^32. */
import { fail, failWith, formatShape } from "./errors.js";

/** The core counts in int32. */
const MAX_SIZE = 2 ** 31 - 1;

/** Product of the sizes, exact or larger than any array can be. Throws for sizes that are not whole numbers >= 0. */
export function countElements(shape: ArrayLike<number>, argument: string): number {
  let elements = 1;
  let isEmpty = false;
  for (let i = 0; i < shape.length; i++) {
    const size = shape[i]!;
    if (!Number.isInteger(size) || size < 0) fail("shape", argument, "sizes that are whole numbers, 0 or more", formatShape(shape));
    if (size > MAX_SIZE) fail("shape", argument, `sizes of at most ${MAX_SIZE}`, formatShape(shape));
    if (size === 0) isEmpty = true;
    else elements *= size; // sizes beside a 0 count as well: a double holds them without wrapping round
  }
  return isEmpty ? 0 : elements;
}

/** Throws for a product that no memory of 32-bit addresses can hold. */
export function checkAddressable(bytes: number, what: string): void {
  if (!(bytes < 2 ** 32)) {
    failWith("shape", `${what}: expected fewer than 2^32 bytes, got ${bytes}`, {
      argument: what,
      expected: "fewer than 2^32 bytes",
      got: String(bytes),
    });
  }
}
