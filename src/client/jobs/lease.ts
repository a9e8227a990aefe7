import { mkdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import { newId, projectDatabaseName } from "../../model/ids.ts";
import { withFileLock } from "../../stores/file/lock.ts";
import { writeWhole } from "../files/write-file.ts";

/** The right to index a project; one job has it, whatever process it runs in. */
export interface Lease {
  readonly projectId: string;
  readonly jobId: string;
  /** Known to whoever holds it, and to no other. */
  readonly token: string;
}

export interface Leases {
  /** Takes the lease for a job, or says which job has it. */
  take(projectId: string, jobId: string): Promise<Lease | { readonly heldBy: string }>;
  /** The job that has it now. */
  holder(projectId: string): Promise<string | undefined>;
  /** Makes this process the one that holds it, and keeps it until released. `onLost` is told when another has taken it. */
  keep(lease: Lease, onLost: () => void): Promise<{ release(): Promise<void> }>;
  /** Gives it back, if it is still this one. */
  release(lease: Lease): Promise<void>;
}

export interface LeaseOptions {
  /** Without a sign of life for this long it may be taken by another. */
  readonly leaseMs?: number;
}

const LeaseFile = z.strictObject({ job_id: z.string(), token: z.string(), pid: z.int(), host: z.string(), beat_ms: z.number() });
type Held = z.output<typeof LeaseFile>;

const LEASE_MS = 30_000;
const LEASE_BYTES = 16 * 1024;

/** Leases as files beside the jobs. A process that died has lost its lease at once, one that hangs or sits on another machine after a while. */
export function leases(dataDir: string, { leaseMs = LEASE_MS }: LeaseOptions = {}): Leases {
  const folder = join(dataDir, "jobs");
  const pathOf = (projectId: string) => join(folder, `${projectDatabaseName(projectId)}.lease`);

  async function readHeld(projectId: string): Promise<Held | undefined> {
    try {
      return LeaseFile.parse(JSON.parse(readOwnFile(pathOf(projectId), LEASE_BYTES).toString("utf8")));
    } catch {
      return undefined; // nobody has it
    }
  }
  async function locked<T>(projectId: string, work: () => Promise<T>): Promise<T> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return withFileLock(`${pathOf(projectId)}.lock`, work);
  }
  const write = ({ projectId, jobId, token }: Lease) =>
    writeWhole(
      pathOf(projectId),
      JSON.stringify({ job_id: jobId, token, pid: process.pid, host: hostname(), beat_ms: Date.now() } satisfies Held),
    );
  const isAlive = (held: Held) => Date.now() - held.beat_ms < leaseMs && (held.host !== hostname() || runs(held.pid));

  const self: Leases = {
    take: (projectId, jobId) =>
      locked(projectId, async () => {
        const held = await readHeld(projectId);
        if (held && isAlive(held)) return { heldBy: held.job_id };
        const lease = { projectId, jobId, token: newId() };
        await write(lease);
        return lease;
      }),
    async holder(projectId) {
      const held = await readHeld(projectId);
      return held && isAlive(held) ? held.job_id : undefined;
    },
    async keep(lease, onLost) {
      let beatAt = Date.now();
      let beating = Promise.resolve();
      const beat = async () => {
        const mine = await locked(lease.projectId, async () => {
          if ((await readHeld(lease.projectId))?.token !== lease.token) return false;
          await write(lease);
          return true;
        });
        if (mine) beatAt = Date.now();
        else onLost();
      };
      await beat();
      const timer = setInterval(() => {
        beating = beating.then(beat).catch(() => {
          if (Date.now() - beatAt > leaseMs) onLost(); // a disk that is full or gone: another may have it by now
        });
      }, leaseMs / 6);
      timer.unref();
      return {
        async release() {
          clearInterval(timer);
          await beating;
          await self.release(lease);
        },
      };
    },
    release: (lease) =>
      locked(lease.projectId, async () => {
        if ((await readHeld(lease.projectId))?.token === lease.token) await rm(pathOf(lease.projectId), { force: true });
      }),
  };
  return self;
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // it runs, as another person
  }
}
