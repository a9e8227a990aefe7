import { CairnError } from "../model/errors.ts";
import type { RunCheckpointInfo, StoredState } from "../model/run.ts";
import type { RunStore } from "../ports/run-store.ts";
import { openRunStore, type RunStoreOptions } from "./open-run-store.ts";

/** Stores the states of runs by run and node, with the six methods of the original design. `RunStore` has leases and history as well. */
export interface CheckpointStore {
  /** Stores the state of a node; overwrites the previous one. */
  save(runId: string, nodeId: string, state: StoredState): Promise<void>;
  /** Returns the state of a node; raises `CheckpointNotFoundError`. */
  load(runId: string, nodeId: string): Promise<StoredState>;
  /** Returns the newest checkpoint of each node, by sequence, without states. */
  list(runId: string): Promise<readonly RunCheckpointInfo[]>;
  /** Deletes the checkpoint of a node; does nothing when there is none. */
  delete(runId: string, nodeId: string): Promise<void>;
  /** Deletes all checkpoints of a run; does nothing when there are none. */
  deleteRun(runId: string): Promise<void>;
  close(): Promise<void>;
}

/** Raised when a run has no checkpoint of a node. Its code is `not_found`. */
export class CheckpointNotFoundError extends CairnError {
  constructor(cause: CairnError) {
    super("not_found", cause.message, { cause, ...(cause.details && { details: cause.details }) });
  }
}

class StoredCheckpoints implements CheckpointStore {
  /** The run store behind it, for `run` and `resume` of a graph. */
  readonly runs: () => Promise<RunStore>;

  constructor(options: RunStoreOptions) {
    let opening: Promise<RunStore> | undefined;
    this.runs = () => {
      opening ??= openRunStore(options);
      return opening;
    };
  }

  async save(runId: string, nodeId: string, state: StoredState): Promise<void> {
    await (await this.runs()).save({ runId, nodeId, state });
  }

  async load(runId: string, nodeId: string): Promise<StoredState> {
    try {
      return (await (await this.runs()).load(runId, nodeId)).state;
    } catch (error) {
      throw error instanceof CairnError && error.code === "not_found" ? new CheckpointNotFoundError(error) : error;
    }
  }

  async list(runId: string): Promise<readonly RunCheckpointInfo[]> {
    return (await this.runs()).list(runId);
  }

  async delete(runId: string, nodeId: string): Promise<void> {
    await (await this.runs()).delete(runId, nodeId);
  }

  async deleteRun(runId: string): Promise<void> {
    await (await this.runs()).deleteRun(runId);
  }

  async close(): Promise<void> {
    await (await this.runs()).close();
  }
}

/** Keeps checkpoints of runs in memory: for tests and short-lived processes. */
export class MemoryStore extends StoredCheckpoints {
  constructor() {
    super({ storage: "memory" });
  }
}

/** Keeps checkpoints of runs as plain files in a folder. */
export class FileStore extends StoredCheckpoints {
  constructor(folder: string) {
    super({ storage: "file", folder });
  }
}

/** Keeps checkpoints of runs in one SQLite file. */
export class SQLiteStore extends StoredCheckpoints {
  constructor(path: string) {
    super({ storage: "sqlite", path });
  }
}

/** Keeps checkpoints of runs in the schema `runs` of a PostgreSQL database. */
export class PostgresStore extends StoredCheckpoints {
  constructor(url: string) {
    super({ storage: "postgres", url });
  }
}
