import { projectDatabaseName } from "../model/ids.ts";

/** Where a client of the stream is: the start of its stream, and its position in each log that sent it something since. */
export interface StreamCursor {
  readonly startedAt: string;
  /** By name of the log. */
  readonly positions: ReadonlyMap<string, string>;
}

/** The log of runs among the logs of projects. */
export const RUNS_LOG = "runs";

/** Returns the name of a project's log in a cursor: sixteen characters, whatever the path. */
export function logName(projectPath: string): string {
  return projectDatabaseName(projectPath).replace(/^project_/, "");
}

/** Logs that one cursor can name. It travels in a header, which is limited. */
export const CURSOR_LOGS_MAX = 200;

/** Writes a cursor as the id of an event. */
export function encodeCursor({ startedAt, positions }: StreamCursor): string {
  return [Date.parse(startedAt).toString(36), ...[...positions].map(([name, position]) => `${name}:${position}`)].join(",");
}

/** Milliseconds before the start of a stream that its first id includes: the clocks of servers and databases differ. */
const START_MARGIN_MS = 5_000;

/** Returns an id for a stream that starts now and received no event yet. Following after it may repeat events of the margin, and loses none. */
export function startId(nowMs: number): string {
  return encodeCursor({ startedAt: new Date(nowMs - START_MARGIN_MS).toISOString(), positions: new Map() });
}

/** Reads the id of an event; `undefined` if it is none of this server. */
export function decodeCursor(id: string): StreamCursor | undefined {
  const [time = "", ...entries] = id.split(",");
  const ms = /^[0-9a-z]{1,9}$/.test(time) ? Number.parseInt(time, 36) : Number.NaN;
  if (Number.isNaN(ms) || ms > 8.64e15 || entries.length > CURSOR_LOGS_MAX) return undefined;
  const positions = new Map<string, string>();
  for (const entry of entries) {
    const parts = /^([0-9a-z]{1,16}):([0-9.]{1,40})$/.exec(entry);
    if (!parts || positions.has(parts[1]!)) return undefined;
    positions.set(parts[1]!, parts[2]!);
  }
  return { startedAt: new Date(ms).toISOString(), positions };
}
