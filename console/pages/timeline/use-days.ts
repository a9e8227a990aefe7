import type { StoreEvent } from "../../api/events.ts";
import { dayOf } from "../../parts/format.ts";
import { project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { currentFilter } from "./timeline-filters.tsx";

export interface DayCount {
  readonly day: string;
  readonly count: number;
}

/** Days of the chart, today included. */
export const SHOWN_DAYS = 60;

/** Counts the checkpoints of each day, with the filter of the page except for its days. */
export function useDays(): readonly DayCount[] | undefined {
  const { tags, context, text } = currentFilter();
  const selected = project.value;
  const input = {
    ...{ limit: SHOWN_DAYS, utc_offset_minutes: -new Date().getTimezoneOffset() },
    ...(tags && { tags }),
    ...(context && { context }),
    ...(text !== undefined && { text }),
  };
  const follow = ({ kind, project: of }: StoreEvent) => kind === "checkpoint" && (selected === undefined || of === selected);
  const all = useCall("checkpoint_days_all", selected === undefined ? input : undefined, follow);
  const own = useCall("checkpoint_days", selected === undefined ? undefined : { project_path: selected, ...input }, follow);
  const { data, error } = selected === undefined ? all : own;
  if (error) return fillDays([]); // the list below reports the error
  return data && fillDays(data.days);
}

/** Puts in the days without any, oldest first. */
function fillDays(counts: readonly DayCount[]): DayCount[] {
  const sums = new Map(counts.map(({ day, count }) => [day, count]));
  const today = new Date();
  return Array.from({ length: SHOWN_DAYS }, (_, index) => {
    // By calendar, because a day has 23 or 25 hours when the clock is changed.
    const day = dayOf(new Date(today.getFullYear(), today.getMonth(), today.getDate() - (SHOWN_DAYS - 1 - index), 12));
    return { day, count: sums.get(day) ?? 0 };
  });
}
