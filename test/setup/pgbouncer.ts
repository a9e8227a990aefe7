import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { lastingPort } from "../client/processes.ts";
import { killProcess } from "../support/processes.ts";

export interface Pooler {
  /** Returns the URL of a database through the pooler. */
  through(url: string): string;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer in front of the server of this URL. Its settings make every use of session state visible: few server connections, which
 * transactions of all clients take in turn, and no startup parameter is ignored.
 */
export async function startPooler(serverUrl: string, settings: Readonly<Record<string, string | number>> = {}): Promise<Pooler> {
  const program = await programPath();
  const folder = mkdtempSync(join(tmpdir(), "cairn-pgbouncer-"));
  const { hostname, port: serverPort } = new URL(serverUrl);
  for (let attempt = 1; ; attempt++) {
    const port = await lastingPort();
    const all = {
      listen_addr: "127.0.0.1",
      listen_port: port,
      unix_socket_dir: "",
      auth_type: "any",
      pool_mode: "transaction",
      default_pool_size: 4,
      max_client_conn: 400,
      server_round_robin: 1,
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}\n`);
    const file = join(folder, "pgbouncer.ini");
    writeFileSync(file, `[databases]\n* = host=${hostname} port=${serverPort} user=postgres\n\n[pgbouncer]\n${lines.join("")}`);
    // PgBouncer refuses to run as root.
    const asUser = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
    const child = spawn(program, [...asUser, file], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr!.on("data", (chunk) => (said = (said + chunk).slice(-2_000)));
    if (await isListening(child, port))
      return {
        through(url) {
          const pooled = new URL(url);
          pooled.port = String(port);
          return pooled.href;
        },
        async stop() {
          await killProcess(child);
          rmSync(folder, { recursive: true, force: true });
        },
      };
    // Another process may have taken the port.
    if (attempt === 5) throw new Error(`PgBouncer did not start: ${said}`);
  }
}

async function isListening(child: ChildProcess, port: number): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((done) => {
      socket.once("connect", () => done(true)).once("error", () => done(false));
    });
    socket.destroy();
    if (isOpen) return true;
    await sleep(20);
  }
  return false;
}

async function programPath(): Promise<string> {
  try {
    return (await promisify(execFile)(resolve(import.meta.dirname, "../../scripts/proxies.sh"), ["path", "pgbouncer"])).stdout.trim();
  } catch (error) {
    throw new Error(`These tests need PgBouncer, and scripts/proxies.sh failed:\n${(error as { stderr?: string }).stderr ?? error}`);
  }
}
