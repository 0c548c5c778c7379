/** A lock file that holds the owner's process id, so that a lock left by a killed process is recognised and taken over. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Runs work while holding the lock; waits for another process that holds it. */
export async function withLock(file, work) {
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  while (!tryLock(file)) {
    if (!ownerIsAlive(file)) {
      rmSync(file, { force: true });
      continue;
    }
    if (!told) process.stderr.write("· waiting for another command that is setting up or building\n");
    told = true;
    await sleep(500);
  }
  const release = () => rmSync(file, { force: true });
  process.once("exit", release);
  try {
    return await work();
  } finally {
    process.removeListener("exit", release);
    release();
  }
}

function tryLock(file) {
  try {
    writeFileSync(file, `${hostname()} ${process.pid}`, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  }
}

function ownerIsAlive(file) {
  let owner;
  try {
    owner = readFileSync(file, "utf8").split(" ");
  } catch {
    return false; // released in the meantime
  }
  const [host, pid] = owner;
  if (host !== hostname()) return true; // a shared home directory: only that machine can tell
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
