const STEPS: readonly (readonly [seconds: number, name: string])[] = [
  [31_556_952, "year"],
  [2_629_746, "month"],
  [604_800, "week"],
  [86_400, "day"],
  [3_600, "hour"],
  [60, "min"],
];

/** Formats a time relative to now: `3 hours ago`. */
export function relativeTime(iso: string, now: Date): string {
  const seconds = Math.round((now.getTime() - Date.parse(iso)) / 1_000);
  if (!Number.isFinite(seconds)) return iso;
  const size = Math.abs(seconds);
  const step = STEPS.find(([length]) => size >= length);
  if (!step) return seconds < -5 ? "in a moment" : "just now";
  const count = Math.floor(size / step[0]);
  const amount = `${count} ${step[1]}${count === 1 || step[1] === "min" ? "" : "s"}`;
  return seconds < 0 ? `in ${amount}` : `${amount} ago`;
}
