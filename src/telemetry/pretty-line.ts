const COLOUR: Readonly<Record<string, string>> = { error: "\u001b[31m", warn: "\u001b[33m", info: "\u001b[32m", debug: "\u001b[90m" };
const DIM = "\u001b[90m";
const OFF = "\u001b[0m";

/** A JSON log line as a person reads it: time, level, message, then the fields. */
export function prettyLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const stack = (err as { stack?: string } | undefined)?.stack;
  const head = `${DIM}${String(time).slice(11, 23)}${OFF} ${COLOUR[String(level)] ?? ""}${String(level).padEnd(5)}${OFF} ${msg ?? ""}`;
  return `${head}${rest.length ? ` ${DIM}${rest.join(" ")}${OFF}` : ""}\n${stack ? `${stack}\n` : ""}`;
}
