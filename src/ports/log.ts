/** The log of a process. Fields are for machines, the message is for people. */
export interface Log {
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
}
