import type { Run } from "../../model/run.ts";
import type { MemoryEventLog } from "./event-log.ts";

interface NodeEntry {
  readonly info: { readonly nodeId: string };
}

/** A run with its entries. It reports steps and changes of status to the log, as the triggers of the databases do. */
export class ObservedRun<Entry extends NodeEntry> {
  entries: Entry[] = [];
  byNode = new Map<string, Entry>();
  deleted = false;
  #run: Run;
  readonly #log: MemoryEventLog;

  constructor(run: Run, log: MemoryEventLog) {
    this.#run = run;
    this.#log = log;
  }

  get run(): Run {
    return this.#run;
  }

  set run(run: Run) {
    const before = this.#run;
    this.#run = run;
    if (before.lastSequence !== run.lastSequence) this.#report("step");
    else if (before.status !== run.status) this.#report("status");
  }

  /** Marks the run as deleted and fences off its lease holder. */
  markDeleted(): void {
    this.deleted = true;
    this.#run = { ...this.#run, fence: this.#run.fence + 1 };
    this.#report("deleted");
  }

  #report(action: string): void {
    const { runId, project, status, lastSequence } = this.#run;
    this.#log.add({ kind: "run", action, id: runId, status, sequence: lastSequence, ...(project !== null && { project }) });
  }
}
