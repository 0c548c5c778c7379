/** Numeric parts of a version, whatever surrounds them: "emcc 3.1.69+dfsg-3" and "v3.1.69" give [3, 1, 69]. */
export function parseVersion(text) {
  const match = /(\d+(?:\.\d+)+)/.exec(text);
  return match ? match[1].split(".").map(Number) : undefined;
}

/** Negative, zero or positive, as a is older than, equal to or newer than b; missing parts count as 0. */
export function compareVersions(a, b) {
  const left = typeof a === "string" ? parseVersion(a) : a;
  const right = typeof b === "string" ? parseVersion(b) : b;
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** True when text holds a version and it is at least the minimum. */
export function isAtLeast(text, minimum) {
  const version = parseVersion(text ?? "");
  return version !== undefined && compareVersions(version, minimum) >= 0;
}
