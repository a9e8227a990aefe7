import { CairnError } from "../../../model/errors.ts";

/** An ISO time as PostgreSQL reads it. JavaScript's year 0 is PostgreSQL's 1 BC, and years beyond 9999 have no sign. */
export function toTimestamp(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) throw new CairnError("invalid_input", `${JSON.stringify(iso.slice(0, 50))} is not a time.`);
  const year = date.getUTCFullYear();
  const rest = date.toISOString().replace(/^[+-]?\d+/, "");
  const digits = String(year > 0 ? year : 1 - year).padStart(4, "0");
  return `${digits}${rest}${year > 0 ? "" : " BC"}`;
}

/**
 * A timestamptz as the server writes it in UTC, such as "2026-01-02 03:04:05.678+00", as an ISO time. A time that JavaScript does not
 * have, such as infinity, comes as the server wrote it, so that one damaged row does not fail a whole query.
 */
export function fromTimestamp(text: string): string {
  const match = /^(\d+)-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?\+00( BC)?$/.exec(text);
  if (!match) return text;
  const [, year, month, day, hours, minutes, seconds, fraction = "0", bc] = match;
  const date = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(bc ? 1 - Number(year) : Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hours), Number(minutes), Number(seconds), Number(fraction.padEnd(3, "0").slice(0, 3)));
  return Number.isNaN(date.getTime()) ? text : date.toISOString();
}
