import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Returns the full count in a soak (`npm run test:soak`) and the short one in `npm test`. */
export function counts<T>({ short, soak }: { readonly short: T; readonly soak: T }): T {
  return process.env.CAIRN_SOAK === "1" ? soak : short;
}

export interface Saver {
  readonly child: ChildProcess;
  /** Ids of acknowledged saves. */
  readonly acknowledged: readonly string[];
  readonly ready: Promise<void>;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  readonly errors: () => string;
  go(): void;
  /** Lets it finish saves in flight and end. */
  stop(): void;
  /** Resolves when this many saves were acknowledged. */
  reached(saves: number): Promise<void>;
}

export interface SaverOptions {
  readonly storage: string;
  readonly dataDir: string;
  readonly project: string;
  readonly count: number;
  readonly atOnce: number;
}

/** Starts a process that saves checkpoints. */
export function startSaver({ storage, dataDir, project, count, atOnce }: SaverOptions): Saver {
  const args = [join(import.meta.dirname, "saver.mjs"), storage, dataDir, project, String(count), String(atOnce)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] });
  const acknowledged: string[] = [];
  const waiting = new Map<number, () => void>();
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  child.stdin.on("error", () => {}); // it may be dead before the start signal
  // All acknowledgements are read when stdout is closed.
  const ended = new Promise<number | NodeJS.Signals>((resolve) => child.once("close", (code, signal) => resolve(signal ?? code ?? -1)));
  const ready = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === "ready") return resolve();
      acknowledged.push(line);
      waiting.get(acknowledged.length)?.();
    });
    child.once("close", () => reject(new Error(`The process ended before it was ready: ${errors}`)));
  });
  return {
    child,
    acknowledged,
    ready,
    ended,
    errors: () => errors,
    go: () => child.stdin.write("go\n"),
    stop: () => child.stdin.end(),
    reached: (saves) =>
      new Promise((resolve, reject) => {
        if (acknowledged.length >= saves) return resolve();
        waiting.set(saves, resolve);
        void ended.then((end) => reject(new Error(`The process ended with ${end} after ${acknowledged.length} saves: ${errors}`)));
      }),
  };
}

/** Starts all processes, lets them save at the same time, and waits for the last. Returns the acknowledged ids. */
export async function saveTogether(processes: number, options: SaverOptions): Promise<string[]> {
  const savers = Array.from({ length: processes }, () => startSaver(options));
  await Promise.all(savers.map(({ ready }) => ready));
  for (const saver of savers) saver.go();
  for (const saver of savers) {
    const end = await saver.ended;
    if (end !== 0) throw new Error(`A process ended with ${end}: ${saver.errors()}`);
  }
  return savers.flatMap(({ acknowledged }) => acknowledged);
}
