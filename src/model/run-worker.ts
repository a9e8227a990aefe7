/** A worker announces itself for each of its graphs. */
export interface NewWorker {
  readonly workerId: string;
  /** Identifies the process, in the form of a lease owner. */
  readonly owner: string;
  readonly graphs: readonly { readonly graph: string; readonly fingerprint: string }[];
  /** The command that starts it, and its folder, for messages. */
  readonly command: string | null;
  readonly folder: string | null;
}

/** A worker of one graph. */
export interface RunWorker {
  readonly workerId: string;
  readonly graph: string;
  readonly fingerprint: string;
  readonly owner: string;
  readonly command: string | null;
  readonly folder: string | null;
  readonly startedAt: string;
  /** When the announcement expires unless it is repeated. */
  readonly until: string;
  /** Whether it has not expired. */
  readonly listening: boolean;
}

export type StoredWorker = Omit<RunWorker, "listening">;

/** Milliseconds after which an expired worker is removed. Until then its command is shown where no worker listens. */
export const WORKER_RETENTION_MS = 7 * 86_400_000;

/** Returns the stored workers after one has announced itself. Removes its older entries, the expired ones of the same command, and forgotten ones. */
export function withAnnouncement(stored: readonly StoredWorker[], worker: NewWorker, at: string, until: string): readonly StoredWorker[] {
  const { workerId, owner, command, folder } = worker;
  const forgottenBefore = new Date(Date.parse(at) - WORKER_RETENTION_MS).toISOString();
  const others = stored.filter(
    (known) =>
      known.workerId !== workerId &&
      !(known.until <= at && ((known.command === command && known.folder === folder) || known.until < forgottenBefore)),
  );
  const startedAt = stored.find((known) => known.workerId === workerId)?.startedAt ?? at;
  return [
    ...others,
    ...worker.graphs.map(({ graph, fingerprint }) => ({ workerId, graph, fingerprint, owner, command, folder, startedAt, until })),
  ];
}

/** Returns the workers of a graph, or of all: listening ones first, then by the time at which they stopped. */
export function selectWorkers(
  stored: readonly StoredWorker[],
  { graph, limit }: { readonly graph?: string | undefined; readonly limit: number },
  at: string,
): readonly RunWorker[] {
  return stored
    .filter((worker) => graph === undefined || worker.graph === graph)
    .sort((a, b) => (a.until === b.until ? (a.workerId < b.workerId ? -1 : 1) : a.until < b.until ? 1 : -1))
    .slice(0, limit)
    .map((worker) => ({ ...worker, listening: worker.until > at }));
}

/** The defaults of a worker. The lease is short, so that another machine takes over within seconds. */
export const WORKER_DEFAULTS = { concurrency: 10, pollMs: 500, leaseMs: 10_000, graceMs: 10_000, maxClaims: 5 } as const;
