import { pino } from "pino";
import type { Log } from "../ports/log.ts";
import { prettyLine } from "./pretty-line.ts";
import { redactLine } from "./redact.ts";

export type LogLevel = "silent" | "error" | "warn" | "info" | "debug" | "trace";

export interface LoggerOptions {
  readonly level?: LogLevel;
  /** Lines for people instead of JSON; by default only on a terminal. */
  readonly pretty?: boolean;
  /** Where lines go; standard error by default, because standard output belongs to answers. */
  readonly write?: (line: string) => void;
}

/** A structured log: one JSON object a line, secrets removed from whatever is in it. */
export function logger({ level = "info", pretty = process.stderr.isTTY === true, write }: LoggerOptions = {}): Log {
  const out = write ?? ((line: string) => process.stderr.write(line));
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err },
      hooks: { streamWrite: redactLine },
    },
    // Without a stream given, pino writes by itself, at once, so that the last words of a process that dies are kept.
    pretty ? { write: (line) => out(prettyLine(line)) } : write ? { write } : pino.destination({ dest: 2, sync: true }),
  );
}
