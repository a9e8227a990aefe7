import type { Readable, Writable } from "node:stream";

/** The environment of a command: streams, variables, folders, clock. Tests provide their own. */
export interface Host {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly now: () => Date;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Prints a text as lines. An empty text prints nothing. */
export function print(host: Host, text: string): void {
  if (text === "") return;
  host.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
}

/** Prints one JSON document: indented on a terminal, on one line elsewhere. */
export function printJson(host: Host, value: unknown): void {
  print(host, host.stdout.isTTY ? JSON.stringify(value, null, 2) : JSON.stringify(value));
}
