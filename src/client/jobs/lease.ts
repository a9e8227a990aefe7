import { mkdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import { newId, projectDatabaseName } from "../../model/ids.ts";
import { once } from "../../model/once.ts";
import { withFileLock } from "../../stores/file/lock.ts";
import { writeAtomically } from "../files/write-atomically.ts";

/** The right to index a project. One job of all processes holds it. */
export interface Lease {
  readonly projectPath: string;
  readonly jobId: string;
  /** A secret of the holder. */
  readonly token: string;
}

export interface Leases {
  /** Acquires the lease for a job, or returns the job that holds it. */
  acquire(projectPath: string, jobId: string): Promise<Lease | { readonly heldBy: string }>;
  /** Returns the job that holds the lease. */
  holder(projectPath: string): Promise<string | undefined>;
  /** Makes this process the holder and renews the lease until it is released. Calls `onLost` if another process has acquired it. */
  hold(lease: Lease, onLost: () => void): Promise<{ release(): Promise<void> }>;
  /** Releases the lease if this is still its token. */
  release(lease: Lease): Promise<void>;
}

export interface LeaseOptions {
  /** Milliseconds after the last renewal in which the lease expires. */
  readonly leaseMs?: number;
}

const LeaseFile = once(() =>
  z.strictObject({ job_id: z.string(), token: z.string(), pid: z.int(), host: z.string(), renewed_at_ms: z.number() }),
);
type Held = z.output<ReturnType<typeof LeaseFile>>;

const LEASE_MS = 30_000;
const LEASE_BYTES = 16 * 1024;

/** Stores leases as files next to the jobs. A lease ends at once when its process has died on this machine, and expires when the process hangs or runs on another machine. */
export function leases(dataDir: string, { leaseMs = LEASE_MS }: LeaseOptions = {}): Leases {
  const folder = join(dataDir, "jobs");
  const pathOf = (projectPath: string) => join(folder, `${projectDatabaseName(projectPath)}.lease`);

  function readHeld(projectPath: string): Held | undefined {
    try {
      return LeaseFile().parse(JSON.parse(readOwnFile(pathOf(projectPath), LEASE_BYTES).toString("utf8")));
    } catch {
      return undefined; // no job holds it
    }
  }
  async function withLock<T>(projectPath: string, work: () => Promise<T>): Promise<T> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return withFileLock(`${pathOf(projectPath)}.lock`, work);
  }
  const write = ({ projectPath, jobId, token }: Lease) =>
    writeAtomically(
      pathOf(projectPath),
      JSON.stringify({ job_id: jobId, token, pid: process.pid, host: hostname(), renewed_at_ms: Date.now() } satisfies Held),
    );
  const isValid = (held: Held) => Date.now() - held.renewed_at_ms < leaseMs && (held.host !== hostname() || isRunning(held.pid));

  const self: Leases = {
    acquire: (projectPath, jobId) =>
      withLock(projectPath, async () => {
        const held = readHeld(projectPath);
        if (held && isValid(held)) return { heldBy: held.job_id };
        const lease = { projectPath, jobId, token: newId() };
        await write(lease);
        return lease;
      }),
    async holder(projectPath) {
      const held = readHeld(projectPath);
      return held && isValid(held) ? held.job_id : undefined;
    },
    async hold(lease, onLost) {
      let renewedAt = Date.now();
      let renewing = Promise.resolve();
      const renew = async () => {
        const isOurs = await withLock(lease.projectPath, async () => {
          if (readHeld(lease.projectPath)?.token !== lease.token) return false;
          await write(lease);
          return true;
        });
        if (isOurs) renewedAt = Date.now();
        else onLost();
      };
      await renew();
      const timer = setInterval(() => {
        renewing = renewing.then(renew).catch(() => {
          if (Date.now() - renewedAt > leaseMs) onLost(); // the disk is full or gone: another process may hold it by now
        });
      }, leaseMs / 6);
      timer.unref();
      return {
        async release() {
          clearInterval(timer);
          await renewing;
          await self.release(lease);
        },
      };
    },
    release: (lease) =>
      withLock(lease.projectPath, async () => {
        if (readHeld(lease.projectPath)?.token === lease.token) await rm(pathOf(lease.projectPath), { force: true });
      }),
  };
  return self;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // it runs as another user
  }
}
