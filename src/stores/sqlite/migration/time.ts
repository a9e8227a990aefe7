/** ISO times of JavaScript and CURRENT_TIMESTAMP of SQLite: the only forms that Cairn writes. */
const WRITTEN = /^([+-]\d{6}|\d{4})-\d\d-\d\d(T| )\d\d:\d\d:\d\d(?:\.(\d{3})(\d{3})?)?(Z?)$/;
const MAX_MS = 8_640_000_000_000_000n;

/** Returns microseconds since 1970, or undefined if the text is not a time. */
export function toMicros(text: string): bigint | undefined {
  const match = WRITTEN.exec(text);
  if (!match) return undefined;
  const [, , separator, , micros = "0", zone] = match;
  if ((separator === "T") !== (zone === "Z")) return undefined;
  const whole = text.replace(/(\.\d{3})\d{3}/, "$1");
  const date = new Date(separator === "T" ? whole : `${whole.replace(" ", "T")}Z`);
  if (Number.isNaN(date.getTime())) return undefined;
  // JavaScript reads a 30th of February as a day in March.
  if (date.toISOString().replace("T", separator!).slice(0, -5) !== whole.replace(/(\.\d{3})?Z?$/, "")) return undefined;
  return BigInt(date.getTime()) * 1000n + BigInt(micros);
}

/** Returns the text of a time as Cairn writes it; undefined outside the time range of JavaScript. */
export function fromMicros(micros: bigint): string | undefined {
  const rest = ((micros % 1000n) + 1000n) % 1000n;
  const ms = (micros - rest) / 1000n;
  if (ms > MAX_MS || ms < -MAX_MS) return undefined;
  const text = new Date(Number(ms)).toISOString();
  return rest === 0n ? text : text.replace("Z", `${String(rest).padStart(3, "0")}Z`);
}
