import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findDebianEntry, parseDeb822, parseOneLine, readAptSources } from "../../build-scripts/lib/apt-sources.mjs";

test("one-line format, with options and comments", () => {
  const entries = parseOneLine(`
# deb http://commented.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://mirror.example/debian bookworm main contrib # a comment
deb-src http://mirror.example/debian bookworm main
deb [trusted=yes] file:/srv/debian ./
`);
  assert.equal(entries.length, 3);
  assert.deepEqual(entries[0], {
    types: ["deb"],
    uris: ["http://mirror.example/debian"],
    suites: ["bookworm"],
    components: ["main", "contrib"],
    signedBy: "/usr/share/keyrings/a.gpg",
    trusted: false,
  });
  assert.deepEqual(entries[1].types, ["deb-src"]);
  assert.equal(entries[2].trusted, true);
});

test("deb822 format, with comments inside a stanza, several values, and a disabled stanza", () => {
  const entries = parseDeb822(`Types: deb deb-src
# http://snapshot.example/20250520
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://disabled.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://keyed.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
`);
  assert.equal(entries.length, 2);
  assert.deepEqual(entries[0].types, ["deb", "deb-src"]);
  assert.deepEqual(entries[0].uris, ["http://mirror.example/debian"]);
  assert.deepEqual(entries[0].suites, ["bookworm", "bookworm-updates"]);
  assert.equal(entries[0].signedBy, "/usr/share/keyrings/debian-archive-keyring.gpg");
  assert.equal(entries[1].signedBy, undefined, "a key in the field is not a path");
});

const debian = parseOneLine("deb http://mirror.example/debian bookworm main")[0];
const security = parseOneLine("deb http://mirror.example/debian-security bookworm-security main")[0];
const nodesource = parseOneLine("deb http://nodesource.example/node_20.x nodistro main")[0];
const google = parseOneLine("deb http://google.example/apt cloud-sdk-bookworm main")[0];
const thirdParty = parseOneLine("deb http://docker.example/linux/debian bookworm stable")[0];

test("Debian's own archive is found among others", () => {
  assert.equal(findDebianEntry([google, nodesource, thirdParty, security, debian], "bookworm"), debian);
});

test("the archive is found when the sources name its class instead of the release", () => {
  const stable = { ...debian, suites: ["stable"] };
  assert.equal(findDebianEntry([nodesource, security, stable], "bookworm"), stable);
});

test("a mirror may have any path", () => {
  const mirror = parseOneLine("deb https://artifacts.example/repository/deb-proxy bookworm main")[0];
  assert.equal(findDebianEntry([security, mirror], "bookworm"), mirror);
});

test("without Debian's archive nothing is found", () => {
  assert.equal(findDebianEntry([google, nodesource, security], "bookworm"), undefined);
  assert.equal(findDebianEntry([], "bookworm"), undefined);
});

test("files are read as apt reads them: .list and .sources, nothing else", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "apt-sources-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "sources.list.d"));
  writeFileSync(join(folder, "sources.list"), "deb http://a.example/debian bookworm main\n");
  writeFileSync(
    join(folder, "sources.list.d/b.sources"),
    "Types: deb\nURIs: http://b.example/debian\nSuites: bookworm\nComponents: main\n",
  );
  writeFileSync(join(folder, "sources.list.d/c.list.disabled"), "deb http://c.example/debian bookworm main\n");
  assert.deepEqual(
    readAptSources(folder).flatMap((entry) => entry.uris),
    ["http://a.example/debian", "http://b.example/debian"],
  );
});

test("a machine without apt has no sources", () => {
  assert.deepEqual(readAptSources("/nowhere/at/all"), []);
});
