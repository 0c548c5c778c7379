/**
 * Reads apt's source lists, to find the Debian mirror that this machine uses: a mirror's address never stands in the
 * repository, because behind a proxy or inside a company it is another one.
 *
 * An entry: { types: ["deb"], uris: [...], suites: [...], components: [...], signedBy?: string, trusted: boolean }
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** One-line format: deb [arch=amd64 signed-by=/path] http://host/debian bookworm main contrib */
export function parseOneLine(text) {
  const entries = [];
  for (const line of text.split("\n")) {
    const match = /^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)/.exec(line);
    if (!match) continue;
    const [, type, options = "", uri, suite, components] = match;
    const option = (name) => new RegExp(`(?:^|\\s)${name}=(\\S+)`, "i").exec(options)?.[1];
    entries.push({
      types: [type],
      uris: [uri],
      suites: [suite],
      components: words(components),
      signedBy: option("signed-by"),
      trusted: option("trusted") === "yes",
    });
  }
  return entries;
}

/** deb822 format: stanzas of "Field: value", separated by blank lines; comments may stand inside a stanza. */
export function parseDeb822(text) {
  const entries = [];
  const withoutComments = text.replace(/^#.*\n?/gm, "");
  for (const stanza of withoutComments.split(/\n\s*\n/)) {
    const fields = new Map();
    let name;
    for (const line of stanza.split("\n")) {
      const field = /^([A-Za-z0-9-]+)\s*:(.*)$/.exec(line);
      if (field) {
        name = field[1].toLowerCase();
        fields.set(name, field[2].trim());
      } else if (name && /^\s+\S/.test(line)) {
        fields.set(name, `${fields.get(name)}\n${line.trim()}`);
      }
    }
    if (!fields.has("uris") || /^(no|false|0)$/i.test(fields.get("enabled") ?? "yes")) continue;
    entries.push({
      types: words(fields.get("types") ?? "deb"),
      uris: words(fields.get("uris")),
      suites: words(fields.get("suites") ?? ""),
      components: words(fields.get("components") ?? ""),
      // A key written out in the field itself spans lines; only a path can be passed on.
      signedBy: fields.get("signed-by")?.includes("\n") ? undefined : fields.get("signed-by"),
      trusted: fields.get("trusted") === "yes",
    });
  }
  return entries;
}

/** All entries of /etc/apt, in apt's own order and with apt's own rule for names (.list and .sources only). */
export function readAptSources(folder = "/etc/apt") {
  const files = [join(folder, "sources.list")];
  const parts = join(folder, "sources.list.d");
  if (existsSync(parts))
    files.push(
      ...readdirSync(parts)
        .sort()
        .map((name) => join(parts, name)),
    );
  return files
    .filter((file) => existsSync(file))
    .flatMap((file) => {
      if (file.endsWith(".list")) return parseOneLine(readFileSync(file, "utf8"));
      if (file.endsWith(".sources")) return parseDeb822(readFileSync(file, "utf8"));
      return [];
    });
}

/**
 * The entry that serves Debian itself: its suite is the release (or the release's class, "stable"), and not one of a
 * third party, whose suites are named otherwise or whose components lack "main", nor the security archive, which
 * holds only updates.
 */
export function findDebianEntry(entries, codename) {
  const suites = new Set([codename, "stable", "oldstable", "testing", "unstable", "sid"]);
  const candidates = entries.filter(
    (entry) =>
      entry.types.includes("deb") &&
      entry.components.includes("main") &&
      entry.suites.some((suite) => suites.has(suite)) &&
      entry.uris.some((uri) => /^(https?|mirror\+https?|mirror|file|copy):/.test(uri)),
  );
  const looksOfficial = (entry) => entry.uris.some((uri) => /\/debian\/?$/.test(uri));
  const exact = (entry) => entry.suites.includes(codename);
  return candidates.find((entry) => exact(entry) && looksOfficial(entry)) ?? candidates.find(exact) ?? candidates.find(looksOfficial);
}

function words(text) {
  return text.split(/\s+/).filter((word) => word !== "");
}
