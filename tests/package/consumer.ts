/** A project of somebody else's: an empty folder with the packed tarball installed, away from this repository. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../..", import.meta.url));
const installed = join(repository, "build/installed/node_modules");

/**
 * @param folderName odd characters in it are part of the test
 * @param files what stands in the project, path to content
 */
export function makeConsumer(folderName: string, files: Record<string, string>): Consumer {
  const parent = mkdtempSync(join(tmpdir(), "attention-consumer-"));
  const folder = join(parent, folderName);
  mkdirSync(folder);
  cpSync(installed, join(folder, "node_modules"), { recursive: true });
  for (const [path, content] of Object.entries({ "package.json": '{ "private": true, "type": "module" }', ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return { folder, remove: () => rmSync(parent, { recursive: true, force: true }) };
}

export interface Consumer {
  readonly folder: string;
  remove(): void;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs this Node, with nothing of the test runner's in its environment. */
export function runNode(args: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}): Outcome {
  const env = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...options.env };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: options.cwd, env, encoding: "utf8", timeout: 60_000 });
  return { code: status, stdout, stderr };
}

/** One key that counts 1 and one that counts 3: the output is (0 + 3 * 4) / 4 = 3. */
export const smokeSource = `
  const attn = await loadAttention();
  const q = { data: Float32Array.of(1), shape: [1, 1] };
  const k = { data: Float32Array.of(0, Math.log(3)), shape: [2, 1] };
  const v = { data: Float32Array.of(0, 4), shape: [2, 1] };
  const answer = attn.scaledDotProductAttention(q, k, v, { scale: 1 }).output.data[0].toFixed(5);
`;
