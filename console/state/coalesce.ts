import type { StoreEvent } from "../api/events.ts";

/** Changes of one project above which the page reads its newest records once, instead of each record. */
const SINGLE_MAX = 10;

/** Reduces a burst of events: the last one of each record, or one for the whole project where many records changed. */
export function coalesce(events: readonly StoreEvent[]): StoreEvent[] {
  const byRecord = new Map<string, StoreEvent>();
  for (const event of events) {
    const key = JSON.stringify([event.kind, event.project, event.id]);
    byRecord.delete(key);
    byRecord.set(key, event);
  }
  const groups = new Map<string, StoreEvent[]>();
  for (const event of byRecord.values()) {
    const key = JSON.stringify([event.kind, event.project]);
    groups.set(key, [...(groups.get(key) ?? []), event]);
  }
  return [...groups.values()].flatMap((group) => {
    const { kind, project } = group[0]!;
    if (group.length <= SINGLE_MAX) return group;
    const many = { kind, action: "many", ...(project !== undefined && { project }) };
    // A list of runs is read by the latest change, where deleted runs do not appear.
    return kind === "run" ? [many, ...group.filter(({ action }) => action === "deleted")] : [many];
  });
}
