const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

interface TimeProps {
  readonly at: string;
  /** Shows the time of day. */
  readonly isClock?: boolean;
  /** Shows date and time. */
  readonly isExact?: boolean;
}

/** A point in time: how long ago, the time of day, or date and time; on hover exactly. */
export function Time({ at, isClock = false, isExact = false }: TimeProps) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={exact.format(date)}>
      {isExact ? exact.format(date) : isClock ? clock.format(date) : ago(date)}
    </time>
  );
}

/** Returns how long ago a time was, in the largest unit that fits. */
export function ago(date: Date, nowMs: number = Date.now()): string {
  const seconds = (date.getTime() - nowMs) / 1000;
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : "just now";
}
