import type { PgValue } from "../driver/driver.ts";

/** Runs single statements on the schema of runs, which the first one creates. */
export interface RunStatements {
  /** Repeats the statement if the connection broke: reads, and writes that may happen twice. */
  ask<Row>(text: string, params: readonly PgValue[]): Promise<Row[]>;
  /** Never repeats the statement. */
  change<Row>(text: string, params: readonly PgValue[]): Promise<Row[]>;
}
