/** ISO times of JavaScript and CURRENT_TIMESTAMP of SQLite, which are all that Cairn has ever written. */
const WRITTEN = /^([+-]\d{6}|\d{4})-\d\d-\d\d(T| )\d\d:\d\d:\d\d(?:\.(\d{3})(\d{3})?)?(Z?)$/;
const MAX_MS = 8_640_000_000_000_000n;

/** Microseconds since 1970, or undefined if the text is no time. */
export function toMicros(text: string): bigint | undefined {
  const match = WRITTEN.exec(text);
  if (!match) return undefined;
  const [, , separator, , micros = "0", zone] = match;
  if ((separator === "T") !== (zone === "Z")) return undefined;
  const whole = text.replace(/(\.\d{3})\d{3}/, "$1");
  const date = new Date(separator === "T" ? whole : `${whole.replace(" ", "T")}Z`);
  if (Number.isNaN(date.getTime())) return undefined;
  // A 30th of February is taken for a day in March.
  if (date.toISOString().replace("T", separator!).slice(0, -5) !== whole.replace(/(\.\d{3})?Z?$/, "")) return undefined;
  return BigInt(date.getTime()) * 1000n + BigInt(micros);
}

/** The text that Cairn writes for a time; undefined beyond the times that JavaScript has. */
export function fromMicros(micros: bigint): string | undefined {
  const rest = ((micros % 1000n) + 1000n) % 1000n;
  const ms = (micros - rest) / 1000n;
  if (ms > MAX_MS || ms < -MAX_MS) return undefined;
  const text = new Date(Number(ms)).toISOString();
  return rest === 0n ? text : text.replace("Z", `${String(rest).padStart(3, "0")}Z`);
}
