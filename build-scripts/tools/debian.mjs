/**
 * Fetches packages of a Debian release and unpacks them into a folder, without installing anything: an apt with
 * configuration, lists and cache of its own. Works without root and changes nothing on the machine. The mirror is the one
 * of the machine's own apt sources, and every package is verified by the Debian keyring that the machine has.
 */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findDebianEntry, readAptSources } from "../lib/apt-sources.mjs";
import { Problem } from "../lib/problem.mjs";
import { isNetworkFailure, readIfThere, run, which } from "../lib/run.mjs";

const archiveKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** { id: "debian", codename: "bookworm" } as /etc/os-release has it. */
export function distribution() {
  const text = readIfThere("/etc/os-release") ?? "";
  const field = (name) => new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(text)?.[1] ?? "";
  return { id: field("ID"), codename: field("VERSION_CODENAME") };
}

/** True when Debian packages can be fetched and unpacked on this machine. */
export function canUnpackDebian() {
  return distribution().id === "debian" && which("apt-get") !== undefined && which("dpkg") !== undefined && existsSync(archiveKeyring);
}

/** An apt of its own for one release, living in a work folder. */
export class DebianRelease {
  /** @param {string} release codename, such as "trixie" @param {string} workDir a folder this process may fill and delete */
  constructor(release, workDir) {
    const entry = findDebianEntry(readAptSources(), distribution().codename);
    if (entry === undefined) {
      throw new Problem(
        "No Debian mirror was found in this machine's apt sources (/etc/apt): add one, or install Emscripten " +
          "by hand (emsdk) so that emcc is on PATH.",
      );
    }
    this.release = release;
    this.mirror = entry.uris[0];
    this.workDir = join(workDir, `apt-${release}`);
    const options = entry.trusted ? "trusted=yes" : `signed-by=${entry.signedBy ?? archiveKeyring}`;
    const folder = (name) => {
      const path = join(this.workDir, name);
      mkdirSync(join(path, "partial"), { recursive: true });
      return path;
    };
    const list = join(this.workDir, "sources.list");
    mkdirSync(this.workDir, { recursive: true });
    writeFileSync(list, ["deb", "deb-src"].map((type) => `${type} [${options}] ${this.mirror} ${release} main\n`).join(""));
    folder("cache/archives");
    this.options = Object.entries({
      "Dir::Etc::sourcelist": list,
      "Dir::Etc::sourceparts": "/dev/null",
      "Dir::Etc::preferences": "/dev/null",
      "Dir::Etc::preferencesparts": "/dev/null",
      "Dir::State::Lists": folder("lists"),
      "Dir::Cache": join(this.workDir, "cache"),
      // apt's own user could not write into a folder below /root.
      "APT::Sandbox::User": process.getuid?.() === 0 ? "root" : "",
      "Acquire::Languages": "none",
      "Acquire::Retries": "2",
      // Without it a list that could not be fetched is only a warning.
      "APT::Update::Error-Mode": "any",
    })
      .filter(([, value]) => value !== "")
      .flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  }

  update() {
    return this.#apt("apt-get", ["update"]);
  }

  /** Those of the packages' dependencies that this machine has not got installed. */
  async missingDependencies(packages) {
    const output = await this.#apt("apt-get", ["--simulate", "--no-install-recommends", "install", ...packages]);
    return [...output.matchAll(/^Inst (\S+)/gm)].map((match) => match[1]).filter((name) => !packages.includes(name));
  }

  /** Downloads packages and unpacks them all into one folder. */
  async unpack(packages, target) {
    const debs = join(this.workDir, "debs");
    mkdirSync(debs, { recursive: true });
    mkdirSync(target, { recursive: true });
    await this.#apt("apt-get", ["download", ...packages], debs);
    for (const name of readdirSync(debs).filter((file) => file.endsWith(".deb"))) {
      await run("dpkg", ["-x", join(debs, name), target], {
        sorry: "A Debian package could not be unpacked: is the disk full? About 2.5 GB are needed.",
      });
    }
  }

  /** Downloads a source package; gives the path of its upstream archive. */
  async originalSource(name) {
    const folder = join(this.workDir, `source-${name}`);
    mkdirSync(folder, { recursive: true });
    await this.#apt("apt-get", ["source", "--download-only", name], folder);
    const archive = readdirSync(folder).find((file) => /\.orig\.tar\.\w+$/.test(file));
    return join(folder, archive);
  }

  #apt(command, args, cwd) {
    return run(command, [...this.options, ...args], {
      cwd,
      env: { LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" },
      sorry: (output) =>
        isNetworkFailure(output)
          ? `The Debian mirror ${this.mirror} (from this machine's apt sources) cannot be reached: check the network or the proxy ` +
            "and run the command again."
          : `apt-get ${args[0]} failed for Debian ${this.release}: see the lines above, mend it and run the command again.`,
    });
  }
}

/** Installs packages with the machine's own apt; for root only. */
export async function aptInstall(packages) {
  const env = { LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" };
  const sorry = (output) =>
    isNetworkFailure(output)
      ? `apt-get cannot reach the Debian mirror to install ${packages.join(", ")}: check the network and run the command again.`
      : `apt-get could not install ${packages.join(", ")}: see the lines above.`;
  await run("apt-get", ["-o", "Acquire::Retries=2", "update"], { env, sorry });
  // An installation that was killed half-way blocks every later one until it is finished; without one this does nothing.
  await run("dpkg", ["--configure", "-a"], { env, sorry });
  await run("apt-get", ["install", "--yes", "--no-install-recommends", ...packages], { env, sorry });
}

export function isRoot() {
  return process.getuid?.() === 0;
}
