import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Bench, root } from "../frame.ts";
import { cpuMsOf } from "./servers.ts";

/** A database of its own on the test server, and what PostgreSQL spends on it. */
export interface BenchDatabase {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]>;
  /** Starts to sample connections and CPU time of the server processes; `stop` returns the maximum and the sum. */
  watch(): { stop(): Promise<{ connectionsMax: number; cpuMs: number }> };
}

/** Milliseconds between two samples. */
const SAMPLE_MS = 50;

export async function createDatabase(bench: Bench): Promise<BenchDatabase> {
  const server = execFileSync(join(root, "scripts", "postgres.sh"), ["acquire", String(process.pid)], { encoding: "utf8" }).trim();
  const name = `cairn_bench_${randomBytes(4).toString("hex")}`;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  bench.defer(async () => {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  const own = new pg.Client({ connectionString: url.href, application_name: "cairn bench" });
  await own.connect();
  own.on("error", () => {}); // the database is dropped with its connections
  return {
    url: url.href,
    query: async <Row extends pg.QueryResultRow>(sql: string) => (await own.query<Row>(sql)).rows,
    watch() {
      const first = new Map<number, number>();
      const last = new Map<number, number>();
      let connectionsMax = 0;
      let watching = true;
      let isFirst = true;
      const sample = async () => {
        const { rows } = await admin.query<{ pid: number }>(
          `SELECT pid FROM pg_stat_activity WHERE datname = '${name}' AND application_name = 'cairn'`,
        );
        connectionsMax = Math.max(connectionsMax, rows.length);
        for (const { pid } of rows) {
          const cpuMs = cpuMsOf(pid);
          if (!first.has(pid)) first.set(pid, isFirst ? cpuMs : 0); // a process that appears later began meanwhile
          last.set(pid, Math.max(cpuMs, last.get(pid) ?? 0));
        }
        isFirst = false;
      };
      const sampling = (async () => {
        while (watching) {
          await sample();
          await sleep(SAMPLE_MS);
        }
      })();
      return {
        async stop() {
          watching = false;
          await sampling;
          await sample();
          const cpuMs = [...last].reduce((sum, [pid, until]) => sum + until - first.get(pid)!, 0);
          return { connectionsMax, cpuMs };
        },
      };
    },
  };
}
