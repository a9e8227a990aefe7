import { EVENTS_KEPT, EVENTS_STAY, EVENTS_TRIM, type LoggedEvent, type StoreEvent } from "../../model/event.ts";
import type { EventLog } from "../../ports/event-log.ts";

export interface MemoryEventLog extends EventLog {
  add(event: Omit<StoreEvent, "at">): void;
}

export function memoryEventLog(): MemoryEventLog {
  let events: LoggedEvent[] = [];
  let newest = 0;
  return {
    add(event) {
      newest++;
      events.push({ ...event, at: new Date().toISOString(), position: String(newest) });
      if (events.length >= EVENTS_KEPT + EVENTS_TRIM) events = events.slice(-EVENTS_KEPT);
    },
    head: async () => String(newest),
    async positionAt(time) {
      return events.findLast(({ at }) => at < time)?.position ?? "0";
    },
    async readAfter(position, limit) {
      const after = /^\d{1,15}$/.test(position) ? Number(position) : -1;
      const first = newest - events.length + 1;
      const isExpired = after < first - 1 || after > newest;
      return { events: isExpired ? [] : events.slice(after - first + 1, after - first + 1 + limit), isExpired, isPending: false };
    },
    changeMark: async () => String(newest),
    async prune(before) {
      const kept = events.filter((event, index) => event.at >= before || index >= events.length - EVENTS_STAY);
      const pruned = events.length - kept.length;
      events = kept;
      return pruned;
    },
  };
}
