/** The process that embeds with one model for the others of a data folder. */
export interface Leader {
  /** The process with its start time, and a unique id. */
  readonly owner: string;
  readonly pid: number;
  readonly model: string;
  /** The Unix socket or named pipe on which it listens. Only this user can open it. */
  readonly address: string;
  /** Proves to the leader that the caller can read the lease. */
  readonly secret: string;
  /** Changes with each renewal. A leader that hangs does not renew. */
  readonly renewedAtMs: number;
  /** Whether it runs on another machine, which shares the data folder: its socket cannot be reached from here. */
  readonly isElsewhere: boolean;
}

/** Where a new leader has to listen. */
export type ListeningPlace = Pick<Leader, "address" | "secret">;

/** A lease that the elected process holds. */
export interface HeldLease {
  /** Ends the lease, so that another process can be elected at once. */
  release(): Promise<void>;
}

/** The lease by which the processes of a data folder elect the one that embeds with one model. */
export interface LeaderLease {
  /** Returns the leader; `undefined` if none runs, or if it no longer renews its lease. */
  read(): Leader | undefined;
  /**
   * Makes this process the leader, or returns `undefined` if another one is. `listen` is called before the lease can be read, so that
   * every reader finds a leader that listens. A leader named in `despite` is replaced: the caller saw that it does not listen.
   * The lease of a leader on another machine is replaced only once it has expired.
   * Calls `onLost` when another process has taken the lease, or when its socket was removed.
   */
  acquire(options: {
    readonly listen: (place: ListeningPlace) => Promise<void>;
    readonly onLost: () => void;
    readonly despite?: string | undefined;
  }): Promise<HeldLease | undefined>;
}
