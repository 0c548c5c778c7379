/**
 * xsimd and Catch2, as sources: both are compiled by emcc as well as by the host's compiler, and emcc must not see
 * /usr/include. Without Debian's packages nothing is fetched here: CMake then downloads them itself, pinned by hash.
 */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../lib/run.mjs";
import { step } from "../lib/steps.mjs";
import { versions } from "../lib/versions.mjs";
import { canUnpackDebian, DebianRelease } from "./debian.mjs";
import { ensureFolder } from "./folder.mjs";

/** @returns {Promise<string | undefined>} its folder, which holds include/ */
export async function ensureXsimd() {
  if (!canUnpackDebian()) return undefined;
  const folder = await ensureFolder(`xsimd-${versions.debianDonor}`, "1", ({ partial, work }) =>
    step("fetching xsimd", async () => {
      const donor = new DebianRelease(versions.debianDonor, work);
      await donor.update();
      await donor.unpack(["libxsimd-dev"], join(work, "unpacked"));
      cpSync(join(work, "unpacked/usr/include"), join(partial, "include"), { recursive: true });
      cpSync(join(work, "unpacked/usr/share/doc/libxsimd-dev/copyright"), join(partial, "copyright"));
    }),
  );
  return folder;
}

/** @returns {Promise<string | undefined>} the source folder of Catch2 */
export async function ensureCatch2() {
  if (!canUnpackDebian()) return undefined;
  const folder = await ensureFolder(`catch2-${versions.debianDonor}`, "1", ({ partial, work }) =>
    step("fetching Catch2", async () => {
      const donor = new DebianRelease(versions.debianDonor, work);
      await donor.update();
      const archive = await donor.originalSource("catch2");
      mkdirSync(join(partial, "source"));
      await run("tar", ["-xf", archive, "-C", join(partial, "source"), "--strip-components=1"], {
        sorry: "Catch2's archive could not be unpacked: run the command again.",
      });
    }),
  );
  return join(folder, "source");
}
