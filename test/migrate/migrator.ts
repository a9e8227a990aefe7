import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { MigrateInput } from "../../src/migrate/service.ts";
import type { Place } from "./place.ts";

export interface Migrated {
  /** The names of all writes, in their order. */
  readonly lines: readonly string[];
  readonly finished: boolean;
  /** The most memory that the process ever had. */
  readonly peakBytes: number;
}

/** Runs a migration in a process of its own, which may kill itself right after a write. */
export async function migrator({ dataDir, stateDir }: Place, input: MigrateInput, dieAt?: number | string): Promise<Migrated> {
  const args = [join(import.meta.dirname, "migrator.mjs"), JSON.stringify({ dataDir, stateDir, input, dieAt })];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data) => {
    output += data;
  });
  const [code, signal] = await once(child, "close");
  if (code !== 0 && signal !== "SIGKILL") throw new Error(`The migration ended with ${code ?? signal}.`);
  const lines = output.split("\n").filter(Boolean);
  const peak = lines.at(-1)?.startsWith("peak ") ? Number(lines.pop()!.slice(5)) : 0;
  return { lines, finished: code === 0, peakBytes: peak * 1024 };
}
