import { CairnError } from "../model/errors.ts";

/** Fields of filters that hold a time. */
const TIME_FIELDS = ["createdFrom", "createdBefore", "changedSince"] as const;

/** Returns the filter with its times in UTC with milliseconds, as they are stored and compared. A caller may give any offset. */
export function utcTimes<Filter extends object>(filter: Filter): Filter {
  const times: Record<string, string> = {};
  for (const field of TIME_FIELDS) {
    const value = (filter as Record<string, unknown>)[field];
    if (value === undefined) continue;
    const time = new Date(value as string);
    if (Number.isNaN(time.getTime())) throw new CairnError("invalid_input", `${field}: not a time. Use one such as 2026-01-31T00:00:00Z.`);
    times[field] = time.toISOString();
  }
  return { ...filter, ...times };
}
