import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** One benchmark: the default export of a file in bench/, named after that file. */
export interface Benchmark {
  readonly summary: string;
  /** Options that it accepts, such as `--million`. */
  readonly flags?: readonly string[];
  /** Options that it accepts with a value, such as `--repo`. */
  readonly values?: readonly string[];
  run(bench: Bench): Promise<void>;
}

/** One line of the report. */
export interface Metric {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The measurements, if there is more than one. The value is their median unless the benchmark says otherwise. */
  readonly samples?: readonly number[];
  /** The metric of the same run with which this one is compared. */
  readonly against?: string;
}

export interface Bench {
  /** Returns whether the command line has this option. */
  hasFlag(flag: string): boolean;
  /** Returns the value of an option. */
  value(option: string): string | undefined;
  /** Adds one metric to the report. */
  record(metric: Metric): void;
  /**
   * Times the candidates call by call, in turns, so that other load on the machine affects all of them equally. Returns
   * microseconds per call, without the warm-up.
   */
  times(candidates: Readonly<Record<string, Call>>, options?: TimesOptions): Promise<Record<string, number[]>>;
  /** Writes a line to stderr. */
  log(line: string): void;
  /** Creates a temporary folder, which is removed at the end. */
  scratch(): string;
  /** Registers cleanup, which also runs after a failure; the last registered runs first. */
  defer(work: () => void | Promise<void>): void;
  /** Imports `bench/peers/<name>/peer.mjs` and installs its packages first if they are missing. */
  peer(name: string): Promise<Record<string, unknown>>;
}

export type Call = (round: number) => unknown;

export interface TimesOptions {
  /** Measured calls of each candidate; default 200. */
  readonly rounds?: number;
  /** Calls before the measured ones; default a tenth of the rounds. */
  readonly warmUp?: number;
}

/** The checkout. Compiled files run elsewhere, so this is the working directory. */
export const root = resolve(process.cwd());

export async function runBenchmark(
  benchmark: Benchmark,
  flags: readonly string[] = [],
  values: ReadonlyMap<string, string> = new Map(),
): Promise<Metric[]> {
  const metrics: Metric[] = [];
  const deferred: (() => void | Promise<void>)[] = [];
  const bench: Bench = {
    hasFlag: (flag) => flags.includes(flag),
    value: (option) => values.get(option),
    record: (metric) => void metrics.push(metric),
    times,
    log: (line) => void process.stderr.write(`${line}\n`),
    scratch() {
      const folder = mkdtempSync(join(tmpdir(), "cairn-bench-"));
      deferred.push(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
    defer: (work) => void deferred.push(work),
    peer: loadPeer,
  };
  try {
    await benchmark.run(bench);
  } finally {
    for (const work of deferred.reverse()) await work();
  }
  return metrics;
}

async function times(
  candidates: Readonly<Record<string, Call>>,
  { rounds = 200, warmUp = Math.ceil(rounds / 10) }: TimesOptions = {},
): Promise<Record<string, number[]>> {
  const taken: Record<string, number[]> = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
  for (let round = 0; round < warmUp + rounds; round++)
    for (const [name, call] of Object.entries(candidates)) {
      const start = process.hrtime.bigint();
      await call(round);
      const us = Number(process.hrtime.bigint() - start) / 1_000;
      if (round >= warmUp) taken[name]!.push(us);
    }
  return taken;
}

async function loadPeer(name: string): Promise<Record<string, unknown>> {
  const folder = join(root, "bench", "peers", name);
  if (!existsSync(join(folder, "node_modules"))) {
    process.stderr.write(`Installing the peer ${name} …\n`);
    const command = existsSync(join(folder, "package-lock.json")) ? "ci" : "install";
    const { status } = spawnSync("npm", [command, "--no-audit", "--no-fund"], { cwd: folder, stdio: ["ignore", 2, 2] });
    if (status !== 0) throw new Error(`The peer ${name} could not be installed (npm ${command} ended with ${status}).`);
  }
  return import(pathToFileURL(join(folder, "peer.mjs")).href);
}

/** Returns the value below which this share of the samples lies. */
export function quantile(samples: readonly number[], share: number): number {
  if (samples.length === 0) throw new Error("A quantile needs at least one sample.");
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5);
