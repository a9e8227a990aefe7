import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { newId } from "../model/ids.ts";

let self: string | undefined;

/** Returns a new lease owner: the machine, the process with its start time, and a unique id. Text without spaces, so that it is one token in a log. */
export function newOwner(): string {
  self ??= [machine(), process.pid, startTime(process.pid) ?? ""].join("/");
  return `${self}/${newId()}`;
}

/**
 * Returns whether the owner of a lease was a process of this machine that no longer exists. An owner of another machine, of another
 * container or of an unknown form counts as existing: its lease has to expire.
 */
export function hasEnded(owner: string): boolean {
  const [where, pid, started] = owner.split("/");
  if (where !== machine() || !/^\d+$/.test(pid ?? "")) return false;
  if (!exists(Number(pid))) return true;
  const now = startTime(Number(pid));
  return now !== undefined && started !== "" && now !== started; // the number belongs to a newer process
}

/** Returns whether the owner of a lease runs on another machine, or ran before this one was booted. Containers share their machine. */
export function isElsewhere(owner: string): boolean {
  const [where = ""] = owner.split("/");
  return where !== host() && !where.startsWith(`${host()}+`);
}

/** Identifies the set of processes among which a process number is unique: one boot of one machine, and on Linux one container. */
function machine(): string {
  const container = readLink("/proc/self/ns/pid");
  return container === undefined ? host() : `${host()}+${plain(container)}`;
}

/** Identifies one boot of one machine, or the machine where the system does not name the boot. */
function host(): string {
  return plain(readText("/proc/sys/kernel/random/boot_id") ?? `${process.platform}+${hostname()}`);
}

const plain = (text: string) => text.replaceAll(/[\s/]/g, "_");

/** Returns when a process started, in ticks since boot; `undefined` where the system does not tell. */
function startTime(pid: number): string | undefined {
  // The second field is the name, in parentheses, and may contain spaces and parentheses itself.
  return readText(`/proc/${pid}/stat`)?.replace(/^.*\)/s, "").trim().split(" ")[19];
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined; // not Linux, or the process is gone
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
