import type { MemoryEventLog } from "./event-log.ts";

interface Observed {
  readonly revision: number;
  readonly uses?: number;
  readonly outdated?: number;
}

/** A map of records that reports every change to the log, as the triggers of the databases do. */
export class ObservedRecords<RecordType extends Observed> extends Map<string, RecordType> {
  readonly #log: MemoryEventLog;
  readonly #kind: "checkpoint" | "knowledge";
  readonly #forgotten = new Set<string>();

  constructor(log: MemoryEventLog, kind: "checkpoint" | "knowledge") {
    super();
    this.#log = log;
    this.#kind = kind;
  }

  override set(id: string, record: RecordType): this {
    const before = this.get(id);
    super.set(id, record);
    if (!before) this.report(this.#forgotten.delete(id) ? "restored" : "saved", id);
    else if (before.revision !== record.revision) this.report("edited", id);
    else if (before.uses !== record.uses || before.outdated !== record.outdated) this.report("feedback", id);
    return this;
  }

  override delete(id: string): boolean {
    const existed = super.delete(id);
    if (existed) this.report("purged", id);
    return existed;
  }

  /** Removes a record that is kept as deleted. */
  moveToDeleted(id: string): boolean {
    const existed = super.delete(id);
    if (existed) this.report("deleted", id);
    return existed;
  }

  /** Notes that the deleted record of this id is gone, because a record is about to be stored under it. */
  forgetDeleted(id: string): void {
    this.#forgotten.add(id);
  }

  report(action: string, id: string): void {
    this.#log.add({ kind: this.#kind, action, id });
  }
}
