import { writeSync } from "node:fs";
import type { Log } from "../ports/log.ts";
import { prettyLine } from "./pretty-line.ts";
import { redactLine } from "./redact.ts";

const LEVELS = ["silent", "error", "warn", "info", "debug", "trace"] as const;

export type LogLevel = (typeof LEVELS)[number];

export interface LoggerOptions {
  readonly level?: LogLevel;
  /** Lines for people instead of JSON; by default only on a terminal. */
  readonly pretty?: boolean;
  /** Where lines go; standard error by default, because standard output belongs to answers. */
  readonly write?: (line: string) => void;
}

/**
 * Opens a structured log: one JSON object a line, with secrets redacted in the finished line. Lines about calls that succeeded are
 * finished and written after the answers of this turn of the event loop; problems are written at once, after the lines before them.
 */
export function logger({ level = "info", pretty = process.stderr.isTTY === true, write = writeStderr }: LoggerOptions = {}): Log {
  const at = (name: LogLevel) => {
    if (LEVELS.indexOf(name) > LEVELS.indexOf(level)) return () => {};
    return (fields: Readonly<Record<string, unknown>>, message: string) => {
      const time = new Date();
      const finish = () => {
        const line = redactLine(`${stringify({ level: name, time: time.toISOString(), ...withError(fields), msg: message })}\n`);
        write(pretty ? prettyLine(line) : line);
      };
      if (write === writeStderr && (name === "info" || name === "debug")) return finishLater(finish);
      finishLines();
      finish();
    };
  };
  return { error: at("error"), warn: at("warn"), info: at("info"), debug: at("debug") };
}

/** Lines that wait for the end of this turn of the event loop, at most this many. */
const WAITING_MAX = 256;
let waiting: (() => void)[] = [];
let finishesOnExit = false;

function finishLater(finish: () => void): void {
  waiting.push(finish);
  if (waiting.length === 1) setImmediate(finishLines);
  if (waiting.length >= WAITING_MAX) finishLines();
  if (finishesOnExit) return;
  finishesOnExit = true;
  process.once("exit", finishLines);
}

function finishLines(): void {
  const lines = waiting;
  waiting = [];
  for (const finish of lines) finish();
}

/** Writes synchronously, so that the last line of a process that dies is not lost. */
function writeStderr(line: string): void {
  try {
    writeSync(2, line);
  } catch (error) {
    // A full pipe (EAGAIN) is written by the stream later. Nothing reads a closed pipe (EPIPE), and a log must not end the process.
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") process.stderr.write(line);
  }
}

function withError(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return fields.err instanceof Error ? { ...fields, err: errorFields(fields.err) } : fields;
}

/** Returns an error's type, message and stack, each with those of its causes. */
function errorFields(error: Error) {
  const chain = [error];
  for (let cause = error.cause; cause instanceof Error && chain.length < 10; cause = cause.cause) chain.push(cause);
  const { code } = error as NodeJS.ErrnoException;
  return {
    type: error.name,
    message: chain.map(({ message }) => message).join(": "),
    stack: chain.map(({ stack, message }) => stack ?? message).join("\ncaused by: "),
    ...(code === undefined ? {} : { code }),
  };
}

/** Writes values that JSON does not have, such as a bigint or an object that contains itself, as text. */
function stringify(line: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(line, (_, value) => (typeof value === "bigint" ? String(value) : value));
  } catch {
    return JSON.stringify(Object.fromEntries(Object.entries(line).map(([name, value]) => [name, isPlain(value) ? value : String(value)])));
  }
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== "object";
}
