import { randomBytes } from "node:crypto";
import { lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { lstat, mkdir, rm, utimes } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import { CairnError } from "../../model/errors.ts";
import { framedHash } from "../../model/ids.ts";
import { once } from "../../model/once.ts";
import type { Leader, LeaderLease } from "../../ports/leader-lease.ts";
import { hasEnded, isElsewhere, newOwner } from "../../scheduling/owner.ts";
import { withFileLock } from "./lock.ts";
import { replaceFile } from "./replace-file.ts";

export interface LeaderLeaseOptions {
  readonly dataDir: string;
  /** Folder of this user for sockets, where the path in the data folder would be too long: `XDG_RUNTIME_DIR`. */
  readonly runtimeDir?: string | undefined;
  readonly model: { readonly model: string; readonly version: string; readonly dimension: number };
  readonly renewMs?: number | undefined;
  /** Milliseconds after the last renewal in which a lease expires: its process hangs, or runs on another machine. */
  readonly expireMs?: number | undefined;
  /** Milliseconds that an election waits for another one. */
  readonly electionMs?: number | undefined;
}

const Stored = once(() => z.strictObject({ owner: z.string(), pid: z.int(), model: z.string(), address: z.string(), secret: z.string() }));
const MAX_BYTES = 16 * 1024;
const RENEW_MS = 3_000;
const EXPIRE_MS = 15_000;
/** The work under the lock takes a few milliseconds. */
const ELECTION_MS = 2_000;
/** The shortest limit of a socket's path is that of macOS, with its end mark. */
const ADDRESS_BYTES = 103;

/** Keeps the lease of one model in `<dataDir>/embedders`, a folder that only this user can open. The sockets are there too. */
export function leaderLease(options: LeaderLeaseOptions): LeaderLease {
  const { dataDir, runtimeDir, model, renewMs = RENEW_MS, expireMs = EXPIRE_MS, electionMs = ELECTION_MS } = options;
  const folder = leaseFolder(dataDir);
  const name = framedHash("embedder", model.model, model.version, model.dimension).slice(0, 12);
  const path = join(folder, `${name}.lease`);
  const lock = `${path}.lock`;
  const read = () => readLease(path, expireMs);

  /** Renews the lease until it is lost. The timer does not keep the process alive. */
  function renewal(owner: string, address: string, onLost: () => void): NodeJS.Timeout {
    const renew = async () => {
      try {
        if (readStored(path)?.owner !== owner) throw new CairnError("conflict", "Another process holds the lease.");
        if (process.platform !== "win32") await lstat(address);
        const now = new Date();
        await utimes(path, now, now);
      } catch {
        clearInterval(timer);
        onLost();
      }
    };
    const timer = setInterval(() => void renew(), renewMs);
    timer.unref();
    return timer;
  }

  return {
    read,
    async acquire({ listen, onLost, despite }) {
      await makePrivateFolder(folder);
      return withFileLock(
        lock,
        async () => {
          const leader = read();
          if (leader && (leader.owner !== despite || leader.isElsewhere)) return undefined;
          const owner = newOwner();
          const secret = randomBytes(32).toString("base64url");
          const address = await newAddress(folder, runtimeDir, name);
          await removeOldSockets(dirname(address), name);
          await listen({ address, secret });
          await replaceFile(path, JSON.stringify({ owner, pid: process.pid, model: model.model, address, secret }), { durable: false });
          const timer = renewal(owner, address, onLost);
          return {
            async release() {
              clearInterval(timer);
              await withFileLock(
                lock,
                async () => {
                  if (readStored(path)?.owner === owner) await rm(path, { force: true });
                },
                electionMs,
              );
            },
          };
        },
        electionMs,
      );
    },
  };
}

/** Returns the leaders of a data folder, one for each model in use. */
export function readLeaders(dataDir: string): Leader[] {
  const folder = leaseFolder(dataDir);
  try {
    return readdirSync(folder).flatMap((file) => (file.endsWith(".lease") ? (readLease(join(folder, file), EXPIRE_MS) ?? []) : []));
  } catch {
    return []; // no process has embedded yet
  }
}

/** Absolute, because processes with other working folders read the address of the socket. */
const leaseFolder = (dataDir: string) => resolve(dataDir, "embedders");

function readLease(path: string, expireMs: number): Leader | undefined {
  const stored = readStored(path);
  const renewedAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  if (!stored || renewedAtMs === undefined || Math.abs(Date.now() - renewedAtMs) > expireMs || hasEnded(stored.owner)) return undefined;
  return isPrivate(stored.address) ? { ...stored, renewedAtMs, isElsewhere: isElsewhere(stored.owner) } : undefined;
}

function readStored(path: string) {
  try {
    return Stored().safeParse(JSON.parse(readOwnFile(path, MAX_BYTES).toString("utf8"))).data;
  } catch {
    return undefined; // absent, writable by others, or damaged
  }
}

/** Whether only this user can have made the socket, and its folder is closed to others. A named pipe is known by the lease alone. */
function isPrivate(address: string): boolean {
  if (process.platform === "win32") return address.startsWith(PIPES);
  const [folder, socket] = [lstatSync(dirname(address), { throwIfNoEntry: false }), lstatSync(address, { throwIfNoEntry: false })];
  const isOwnFolder = folder?.isDirectory() === true && folder.uid === process.getuid?.() && (folder.mode & 0o077) === 0;
  // A missing socket is left to the connection, which fails and lets another process take over.
  return isOwnFolder && (socket === undefined || (socket.isSocket() && socket.uid === process.getuid?.()));
}

const PIPES = "\\\\.\\pipe\\cairn-";

async function newAddress(folder: string, runtimeDir: string | undefined, name: string): Promise<string> {
  if (process.platform === "win32") return `${PIPES}${name}-${randomBytes(16).toString("hex")}`;
  const file = `${name}-${randomBytes(4).toString("hex")}.sock`;
  const own = join(folder, file);
  if (Buffer.byteLength(own) <= ADDRESS_BYTES) return own;
  const isUsable = runtimeDir !== undefined && isAbsolute(runtimeDir);
  const other = isUsable ? join(runtimeDir, `cairn-${framedHash(realpathSync(folder)).slice(0, 12)}`, file) : undefined;
  if (other === undefined || Buffer.byteLength(other) > ADDRESS_BYTES)
    throw new CairnError("unavailable", `The path of the data folder is too long for a socket, and XDG_RUNTIME_DIR names no shorter one.`);
  await makePrivateFolder(dirname(other));
  return other;
}

async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await lstat(folder);
  if (process.platform !== "win32" && (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0))
    throw new CairnError("forbidden", `Other users can open ${basename(folder)} in the data folder. Run chmod 700 on it.`);
}

/** Removes the sockets of leaders that were killed. */
async function removeOldSockets(folder: string, name: string): Promise<void> {
  if (process.platform === "win32") return; // pipes end with their process
  for (const file of readdirSync(folder))
    if (file.startsWith(`${name}-`) && file.endsWith(".sock")) await rm(join(folder, file), { force: true });
}
