const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const UNIT_MS: Readonly<Record<string, number>> = {
  min: MINUTE_MS,
  h: 60 * MINUTE_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  mo: 30 * DAY_MS,
  y: 365 * DAY_MS,
};

/** Examples for help and errors. */
export const TIME_FORMS = "2026-11-16, yesterday, 7d or 2026-01-31T00:00:00Z";

/**
 * Reads a time as people write it: `2026-11-16` and `yesterday` are the start of that day here, `7d` is seven days ago, or in seven days
 * for a time in the future. Returns `undefined` for anything else.
 */
export function readTime(text: string, now: Date, { future = false } = {}): string | undefined {
  const word = text.trim().toLowerCase();
  const [, count, unit] = /^(\d{1,6})\s*(min|h|d|w|mo|y)$/.exec(word) ?? [];
  if (unit) return iso(new Date(now.getTime() + (future ? 1 : -1) * Number(count) * UNIT_MS[unit]!));
  const day = { today: 0, yesterday: -1, tomorrow: 1 }[word];
  if (day !== undefined) return iso(new Date(now.getFullYear(), now.getMonth(), now.getDate() + day));
  if (word === "now") return iso(now);
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(word) ?? [];
  if (year) {
    const midnight = new Date(Number(year), Number(month) - 1, Number(date));
    return midnight.getMonth() === Number(month) - 1 && midnight.getDate() === Number(date) ? iso(midnight) : undefined;
  }
  return /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d/.test(word) ? iso(new Date(text.trim().replace(" ", "T"))) : undefined;
}

function iso(time: Date): string | undefined {
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
