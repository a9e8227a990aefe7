import { CairnError } from "../model/errors.ts";

const HOUR_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS, w: 7 * 24 * HOUR_MS };

/** Parses `30d`, `12h` or `4w` before now, or an ISO 8601 time. Returns `undefined` for anything else. */
export function pointInTime(text: string, now: string): string | undefined {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  const at = unit ? new Date(Date.parse(now) - Number(count) * UNIT_MS[unit]!) : /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : undefined;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
}

/** Returns the time of an `older_than` rule; raises `invalid_input` for any other text. */
export function olderThanTime(text: string, now: string): string {
  const time = pointInTime(text, now);
  if (time === undefined)
    throw new CairnError("invalid_input", "older_than: use a duration such as 30d, 12h or 4w, or a time such as 2026-01-31T00:00:00Z.");
  return time;
}
