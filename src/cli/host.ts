import type { Readable, Writable } from "node:stream";

/** What a command sees of the world around it, so that tests can be that world. */
export interface Host {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly now: () => Date;
  /** Aborted when the person presses Ctrl-C. */
  readonly signal: AbortSignal;
}

export function print(host: Host, text: string): void {
  host.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
}

/** One JSON document: spread out for eyes, on one line for programs. */
export function printJson(host: Host, value: unknown): void {
  print(host, host.stdout.isTTY ? JSON.stringify(value, null, 2) : JSON.stringify(value));
}
