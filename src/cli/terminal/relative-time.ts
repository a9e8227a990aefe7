const STEPS: readonly (readonly [seconds: number, name: string, short: string])[] = [
  [31_556_952, "year", "y"],
  [2_629_746, "month", "mo"],
  [604_800, "week", "w"],
  [86_400, "day", "d"],
  [3_600, "hour", "h"],
  [60, "min", "m"],
];

/** Formats a time relative to now: `3 hours ago`. */
export function relativeTime(iso: string, now: Date): string {
  return format(iso, now, (count, name) => `${count} ${name}${count === 1 || name === "min" ? "" : "s"}`);
}

/** Formats a time relative to now for a table: `3h ago`. */
export function shortRelativeTime(iso: string, now: Date): string {
  return format(iso, now, (count, _name, short) => `${count}${short}`);
}

function format(iso: string, now: Date, amountOf: (count: number, name: string, short: string) => string): string {
  const seconds = Math.round((now.getTime() - Date.parse(iso)) / 1_000);
  if (!Number.isFinite(seconds)) return iso;
  const size = Math.abs(seconds);
  const step = STEPS.find(([length]) => size >= length);
  if (!step) return seconds < -5 ? "in a moment" : "just now";
  const amount = amountOf(Math.floor(size / step[0]), step[1], step[2]);
  return seconds < 0 ? `in ${amount}` : `${amount} ago`;
}
