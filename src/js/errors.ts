/**
 * The one error class of the package, and the helpers that word its messages.
 *
 * Internal users: call `fail*` (they throw); a message always reads "argument: expected …, got …".
 */

/**
 * What went wrong, for programs:
 *
 * | code | meaning |
 * | --- | --- |
 * | `"shape"` | a size, rank or number of elements does not fit |
 * | `"dtype"` | an argument is of the wrong kind: not a tensor, or elements of a type that is not accepted there |
 * | `"option"` | an option is unknown, out of range, or contradicts another one |
 * | `"memory"` | the memory needed could not be had; the next call works |
 * | `"disposed"` | the object, or the instance it came from, was disposed |
 * | `"load"` | the WebAssembly file could not be loaded, or computes wrong numbers |
 */
export type AttentionErrorCode = "shape" | "dtype" | "option" | "memory" | "disposed" | "load";

/** What an {@link AttentionError} knows beside its message. */
export interface AttentionErrorDetails {
  /** Name of the argument or option at fault, such as `"key"` or `"options.window.left"`. */
  readonly argument?: string;
  /** What was expected, in words. */
  readonly expected?: string;
  /** What came instead, in words. */
  readonly got?: string;
  /** The error that lies beneath, where there is one. */
  readonly cause?: unknown;
}

const BRAND = Symbol.for("attention-wasm.AttentionError");

/**
 * Every error that this package throws.
 *
 * `instanceof AttentionError` holds for all of them. Beside that, errors of code `"dtype"` are `TypeError`s and errors of code `"shape"`, `"option"`
 * and `"memory"` are `RangeError`s, so that code which knows nothing of this package sorts them as it sorts those of the language.
 * A call that throws has written nothing: every buffer, layer and cache is as it was.
 */
export class AttentionError extends Error {
  /** What went wrong, for programs. */
  declare readonly code: AttentionErrorCode;
  /** Name of the argument or option at fault, where there is one. */
  declare readonly argument: string | undefined;
  /** What was expected, in words. */
  declare readonly expected: string | undefined;
  /** What came instead, in words. */
  declare readonly got: string | undefined;

  constructor(code: AttentionErrorCode, message: string, details: AttentionErrorDetails = {}) {
    super(message, causeOf(details));
    describe(this, code, details);
  }

  /** True for every error of this package, also for those that are a `TypeError` or a `RangeError`, and across copies of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && BRAND in value;
  }

  static {
    brand(this.prototype);
  }
}

class AttentionTypeError extends TypeError {
  constructor(code: AttentionErrorCode, message: string, details: AttentionErrorDetails) {
    super(message, causeOf(details));
    describe(this, code, details);
  }
  static {
    brand(this.prototype);
  }
}

class AttentionRangeError extends RangeError {
  constructor(code: AttentionErrorCode, message: string, details: AttentionErrorDetails) {
    super(message, causeOf(details));
    describe(this, code, details);
  }
  static {
    brand(this.prototype);
  }
}

// The name stands on the prototype and not on the object: only so do stack traces begin with it.
function brand(prototype: Error): void {
  Object.defineProperty(prototype, "name", { value: "AttentionError", writable: true, configurable: true });
  Object.defineProperty(prototype, BRAND, { value: true });
}

function causeOf(details: AttentionErrorDetails): ErrorOptions | undefined {
  return details.cause === undefined ? undefined : { cause: details.cause };
}

function describe(error: Error, code: AttentionErrorCode, details: AttentionErrorDetails): void {
  const fields = { code, argument: details.argument, expected: details.expected, got: details.got };
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(error, name, { value, enumerable: value !== undefined, configurable: true });
  }
}

/** An error of the class that belongs to its code, see {@link AttentionError}. */
function create(code: AttentionErrorCode, message: string, details: AttentionErrorDetails): AttentionError {
  const Class = code === "dtype" ? AttentionTypeError : code === "load" || code === "disposed" ? AttentionError : AttentionRangeError;
  return new Class(code, message, details) as AttentionError;
}

/** Throws "argument: expected …, got …". */
export function fail(code: AttentionErrorCode, argument: string, expected: string, got: string): never {
  throw create(code, `${argument}: expected ${expected}, got ${got}`, { argument, expected, got });
}

/** Throws an error whose message is a sentence of its own, for what does not read as "expected …, got …". */
export function failWith(code: AttentionErrorCode, message: string, details: AttentionErrorDetails = {}): never {
  throw create(code, message, details);
}

/** Throws for memory that could not be had. */
export function failMemory(purpose: string, bytes: number, maximumBytes: number, cause?: unknown): never {
  const expected = `room for ${bytes} bytes`;
  const got = bytes > maximumBytes ? `a limit of ${maximumBytes} bytes` : "none left";
  throw create("memory", `${purpose}: could not get ${bytes} bytes of memory (${got}); nothing was changed, and smaller calls work`, {
    argument: purpose,
    expected,
    got,
    cause,
  });
}

/** Throws for the use of something that was disposed. */
export function failDisposed(what: string): never {
  throw create("disposed", `${what} was disposed and can't be used any more`, {
    argument: what,
    expected: "a live object",
    got: "a disposed one",
  });
}

/**
 * What came, in a few words that help: "a Float32Array of 12 elements", "null", "the string \"yes\"", "an array of 3 elements".
 * Never throws and never prints large contents.
 */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined || typeof value === "boolean") return String(value);
  if (typeof value === "number") return Object.is(value, -0) ? "0" : String(value);
  if (typeof value === "string") return value.length > 40 ? `a string of ${value.length} characters` : JSON.stringify(value);
  if (typeof value === "bigint") return `the BigInt ${value}`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (Array.isArray(value)) return `an array of ${value.length} element${value.length === 1 ? "" : "s"}`;
  if (ArrayBuffer.isView(value)) {
    const { length } = value as Uint8Array;
    const count = length === undefined ? `${value.byteLength} bytes` : `${length} element${length === 1 ? "" : "s"}`;
    return `${article((value as Uint8Array)[Symbol.toStringTag])} of ${count}${isDetached(value) ? " (its buffer is detached)" : ""}`;
  }
  const name = (value as object).constructor?.name;
  return name === undefined || name === "" ? "an object" : name === "Object" ? `an object with ${keyNames(value)}` : article(name);
}

function article(noun: string): string {
  return `${/^[AEIOU](?!int)/.test(noun) ? "an" : "a"} ${noun}`;
}

function keyNames(value: object): string {
  const keys = Object.keys(value);
  if (keys.length === 0) return "no properties";
  return keys.slice(0, 5).join(", ") + (keys.length > 5 ? ", …" : "");
}

/** True when the memory behind a view was transferred or, for a view of WebAssembly memory, replaced by growth. Only meant for messages. */
export function isDetached(view: ArrayBufferView): boolean {
  const buffer = view.buffer as ArrayBuffer & { readonly detached?: boolean };
  if (typeof SharedArrayBuffer === "function" && buffer instanceof SharedArrayBuffer) return false;
  if (typeof buffer.detached === "boolean") return buffer.detached;
  if (buffer.byteLength !== 0) return false;
  try {
    new Uint8Array(buffer); // throws exactly for a detached buffer
    return false;
  } catch {
    return true;
  }
}

/** "[2, 3]", also for array-likes such as the `dims` of other libraries. */
export function formatShape(shape: ArrayLike<number>): string {
  return `[${Array.from(shape, (size) => String(size)).join(", ")}]`;
}

/**
 * Throws when `options` is no object, or has a key that is not in `known`; names the known keys that are nearest in spelling.
 * `argument` is what the caller calls it ("options" in most calls).
 */
export function checkOptionNames(options: object, known: ReadonlySet<string>, argument: string): void {
  if (typeof options !== "object" || options === null) fail("option", argument, "an object", describeValue(options));
  for (const name in options) {
    if (!known.has(name)) unknownOption(name, known, argument);
  }
}

function unknownOption(name: string, known: ReadonlySet<string>, argument: string): never {
  const names = [...known];
  const near = names
    .map((other) => ({ other, cost: distance(name.toLowerCase(), other.toLowerCase()) }))
    .filter(({ other, cost }) => cost <= Math.max(2, Math.floor(other.length / 3)))
    .sort((a, b) => a.cost - b.cost)
    .slice(0, 3)
    .map(({ other }) => other);
  const expected = near.length > 0 ? `a known option, perhaps ${near.join(" or ")}` : `one of ${names.join(", ")}`;
  throw create("option", `${argument}.${name}: there is no such option; expected ${expected}`, {
    argument: `${argument}.${name}`,
    expected,
    got: name,
  });
}

/** Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
