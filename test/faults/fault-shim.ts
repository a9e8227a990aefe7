import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";

/** The fault of the chosen operation; fault-shim.c describes each. */
export type FaultMode = "EIO" | "ENOSPC" | "torn" | "kill" | "torn-kill" | "power-cut";

const FAIL_WITH: Record<FaultMode, string> = {
  EIO: "5",
  ENOSPC: "28",
  torn: "torn",
  kill: "kill",
  "torn-kill": "torn-kill",
  "power-cut": "power-cut",
};

export interface FaultyRun {
  /** The lines that the process wrote to stdout before it ended. */
  readonly lines: readonly string[];
  /** Exit code, or the signal that ended the process. */
  readonly ended: number | NodeJS.Signals;
  readonly errors: string;
  /** Counted file operations; known only when the process exited by itself. */
  readonly operations: number;
}

export interface FaultyProcess {
  /** A script and its arguments, run by this Node. */
  readonly args: readonly string[];
  /** Part of the path of the files whose operations count. */
  readonly path: string;
  /** The operation that fails; 0 for none. */
  readonly nth: number;
  readonly mode: FaultMode;
}

/** Compiles the shim for the tests of this file. Linux only: it is preloaded into a process. Returns the function that runs one. */
export function faultShim(): { readonly folder: string; run(process: FaultyProcess): Promise<FaultyRun> } {
  const folder = mkdtempSync(join(tmpdir(), "cairn-fault-shim-"));
  const library = join(folder, "fault-shim.so");
  beforeAll(() => {
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-w", "-o", library, join(import.meta.dirname, "fault-shim.c"), "-ldl"]);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let runs = 0;
  return {
    folder,
    async run({ args, path, nth, mode }) {
      const count = join(folder, `count-${runs++}`);
      const fault = { FAIL_PATH: path, FAIL_NTH: String(nth), FAIL_WITH: FAIL_WITH[mode], FAIL_COUNT: count };
      const child = spawn(process.execPath, args, { env: { ...process.env, LD_PRELOAD: library, ...fault } });
      const lines: string[] = [];
      let errors = "";
      createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
      child.stderr.on("data", (data) => {
        errors += data;
      });
      // "close" is emitted when every line has been read; "exit" may be emitted before.
      const ended = await new Promise<number | NodeJS.Signals>((resolve) =>
        child.once("close", (code, signal) => resolve(signal ?? code ?? -1)),
      );
      return { lines, ended, errors, operations: typeof ended === "number" ? Number(readFileSync(count, "utf8")) : 0 };
    },
  };
}
