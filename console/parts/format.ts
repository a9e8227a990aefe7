const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const dayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const dayYearFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" });

export const formatCount = (value: number): string => number.format(value);
export const formatCompact = (value: number): string => (value < 10_000 ? number.format(value) : compact.format(value));

/** Formats a number with its noun: `1 file`, `2 files`. */
export function formatPlural(count: number, one: string, many: string = `${one}s`): string {
  return `${number.format(count)} ${count === 1 ? one : many}`;
}

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** Returns the last part of a project's path, which is what people call it. */
export function projectName(path: string): string {
  return path.split(/[/\\]/).filter(Boolean).at(-1) ?? path;
}

/** Returns the calendar day of a time here, as `2026-11-17`. */
export function dayOf(at: string | Date): string {
  const date = typeof at === "string" ? new Date(at) : at;
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
}

/** Names a day as people do: today, yesterday, the weekday, or with its year. */
export function formatDay(day: string, now: Date = new Date()): string {
  if (day === dayOf(now)) return "Today";
  if (day === dayOf(new Date(now.getTime() - 86_400_000))) return "Yesterday";
  const date = new Date(`${day}T12:00:00`);
  return date.getFullYear() === now.getFullYear() ? dayFormat.format(date) : dayYearFormat.format(date);
}

/** Returns whether a list shortened this text. */
export function isShortened(text: string): boolean {
  return /\[cut[^\]]{0,60}; use [a-z_]{1,30}\]$/.test(text);
}

/** Quotes a text for a command line, where that is necessary. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
