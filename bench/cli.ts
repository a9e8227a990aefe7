import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Benchmark, median, root } from "./frame.ts";

const ROUNDS = 15;
const CHECKPOINTS = 20;
const main = join(root, "dist", "bundle", "main.cjs");

/** Measures the CPU time of a command in multiples of a bare Node process, in turns, so that other load affects all of them equally. */
export default {
  summary: "CPU time of short commands, in multiples of `node -e 0`",
  async run(bench) {
    const place = await project(bench);
    measure(bench, place, "", process.env);
    // A bare Node that reads extra certificates takes more than twice the time, which makes every ratio look better.
    const { NODE_EXTRA_CA_CERTS: _, ...clean } = process.env;
    measure(bench, place, "clean_", clean);
  },
} satisfies Benchmark;

function measure(bench: Bench, place: Place, prefix: string, env: NodeJS.ProcessEnv): void {
  const candidates: Readonly<Record<string, readonly string[]>> = {
    node: ["-e", "0"],
    version: [main, "--version"],
    help: [main, "--help"],
    list: [main, "checkpoint", "list"],
  };
  const samples = new Map(Object.keys(candidates).map((name): [string, number[]] => [name, []]));
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, args] of Object.entries(candidates)) {
      const ms = cpuMs(args, place, env);
      if (round > 0) samples.get(name)!.push(ms); // the first round fills the caches of the file system and of compiled code
    }
  const base = median(samples.get("node")!);
  for (const [name, taken] of samples)
    bench.record({
      name: `${prefix}${name}_ms`,
      value: median(taken),
      unit: "ms",
      samples: taken,
      ...(name !== "node" && { against: `${prefix}node_ms` }),
    });
  for (const command of ["version", "help", "list"])
    bench.record({ name: `${prefix}${command}_cpu_ratio`, value: median(samples.get(command)!) / base, unit: "× node" });
}

interface Place {
  readonly home: string;
  readonly folder: string;
}

async function project(bench: Bench): Promise<Place> {
  const home = bench.scratch();
  const folder = join(home, "project");
  mkdirSync(folder);
  const { open } = await import("../src/index.ts");
  const cairn = await open({ dataDir: join(home, ".cairn"), embedder: { kind: "static" } });
  for (let index = 0; index < CHECKPOINTS; index++)
    await cairn.checkpoints.save({ projectPath: folder, summary: `Step ${index} of the parser`, tags: ["parser", `step-${index}`] });
  await cairn.close();
  return { home, folder };
}

/** Returns the user and system time of one process. The shell measures it, because Node does not report the usage of a child. */
function cpuMs(args: readonly string[], { home, folder }: Place, env: NodeJS.ProcessEnv): number {
  const { stderr, status } = spawnSync(
    "bash",
    ["-c", 'TIMEFORMAT="%3U %3S"; time "$@" > /dev/null 2>&1', "bash", process.execPath, ...args],
    { cwd: folder, encoding: "utf8", env: { ...env, HOME: home } },
  );
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}.`);
  const [user = 0, system = 0] = stderr.trim().split("\n").at(-1)!.split(" ").map(Number);
  return (user + system) * 1_000;
}
