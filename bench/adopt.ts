import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Session, sampleSession, writeClaude, writeCodex, writeGemini, writeOpencode } from "./adopt/sessions.ts";
import { type Bench, type Benchmark, root } from "./frame.ts";

const SESSIONS = 400;
const BYTES = 160e6;
const PROJECTS = 20;

interface Run {
  readonly seconds: number;
  readonly rssMb: number;
  readonly report: { readonly sessions: number; readonly imported: number; readonly updated: number };
}

/** Imports generated sessions of four tools with the real command, then runs it again. */
export default {
  summary: `adopts ${SESSIONS} sessions (${BYTES / 1e6} MB) in the formats of four tools, twice`,
  async run(bench) {
    const home = bench.scratch();
    await writeSessions(home);
    const first = await adopt(bench, home, "first");
    const second = await adopt(bench, home, "second");
    bench.record({ name: "sessions", value: first.report.imported, unit: "sessions" });
    bench.record({ name: "seconds", value: first.seconds, unit: "s" });
    bench.record({ name: "second_run_imported", value: second.report.imported + second.report.updated, unit: "sessions" });
    bench.record({ name: "second_run_seconds", value: second.seconds, unit: "s" });
    bench.record({ name: "peak_rss_mb", value: Math.max(first.rssMb, second.rssMb), unit: "MB" });
  },
} satisfies Benchmark;

async function writeSessions(home: string): Promise<void> {
  const opencode: Session[] = [];
  const writers = [writeClaude, writeCodex, writeGemini, (_home: string, session: Session) => void opencode.push(session)];
  for (let number = 0; number < SESSIONS; number++) {
    const folder = join(home, "projects", `project-${number % PROJECTS}`);
    mkdirSync(join(folder, ".git"), { recursive: true });
    // A quarter of the sessions are ten times as long as the others.
    const share = Math.floor(number / writers.length) % 4 === 0 ? 10 : 1;
    writers[number % writers.length]!(home, sampleSession(number, folder, (BYTES / SESSIONS / 3.25) * share));
  }
  await writeOpencode(home, opencode);
}

/** Runs the command in a process of its own and returns its time, peak memory and report. */
async function adopt(bench: Bench, home: string, name: string): Promise<Run> {
  const peak = join(home, `${name}.rss`);
  const hook = join(home, "peak.cjs");
  writeFileSync(
    hook,
    'process.on("exit", () => require("node:fs").writeFileSync(process.env.PEAK_FILE, String(process.resourceUsage().maxRSS)))',
  );
  const env = { PATH: process.env.PATH, HOME: home, PEAK_FILE: peak };
  const started = performance.now();
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--require", hook, join(root, "dist", "bundle", "main.cjs"), "adopt", "--json"],
    {
      cwd: join(home, "projects"),
      env,
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const seconds = (performance.now() - started) / 1_000;
  bench.log(`${name} run: ${seconds.toFixed(1)} s`);
  return { seconds, rssMb: Number(readFileSync(peak, "utf8")) / 1_024, report: JSON.parse(stdout) };
}
