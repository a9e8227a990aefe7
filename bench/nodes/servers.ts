import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "../../src/open/open.ts";
import { type Bench, root } from "../frame.ts";

/** Server processes on one database, and what they cost. */
export interface Servers {
  /** Calls the next node, again if it is too busy. Throws if the answer is another refusal. */
  call(path: string, body: object): Promise<Record<string, unknown>>;
  /** CPU milliseconds of all nodes so far. Linux only. */
  cpuMs(): number;
  /** Calls that a node was too busy for, so far. */
  refusals(): number;
  stop(): Promise<void>;
}

export async function startServers(bench: Bench, storage: string, nodes: number): Promise<Servers> {
  const folder = bench.scratch();
  const cairn = await open({ storage, dataDir: folder, embedder: { kind: "none" } });
  const { key } = await cairn.keys.create({ label: "bench", access: "admin", projects: "all" });
  await cairn.close();
  const started = await Promise.all(Array.from({ length: nodes }, (_, node) => serve(storage, join(folder, `node-${node}`))));
  const stop = async () => {
    for (const { child } of started) child.kill("SIGTERM");
    for (const { child } of started) if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  bench.defer(stop);
  let turn = 0;
  let refusals = 0;
  const call: Servers["call"] = async (path, body) => {
    const { url } = started[turn++ % nodes]!;
    const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = (await response.json()) as Record<string, unknown>;
    if (response.status === 503) {
      refusals++;
      await sleep(1_000);
      return call(path, body);
    }
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  return {
    call,
    refusals: () => refusals,
    cpuMs: () => started.reduce((sum, { child }) => sum + cpuMsOf(child.pid!), 0),
    stop,
  };
}

async function serve(storage: string, home: string): Promise<{ child: ChildProcess; url: string }> {
  mkdirSync(home, { recursive: true });
  const child = spawn(process.execPath, [join(root, "dist/bundle/main.cjs"), "serve", "--port", "0", "--json"], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      CAIRN_STORAGE: storage,
      CAIRN_EMBEDDER_KIND: "static",
      CAIRN_LOG_LEVEL: "silent",
      CAIRN_HTTP_RATE_LIMIT_PER_SECOND: "100000",
      CAIRN_HTTP_RATE_LIMIT_BURST: "100000",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(createInterface(child.stdout!), "line");
  return { child, url: JSON.parse(line).url };
}

/** Milliseconds of one tick in /proc: USER_HZ is 100 on every common Linux. */
const TICK_MS = 10;

/** Returns user and system time of a process and its threads. */
export function cpuMsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return 0; // the process has ended
  }
}
