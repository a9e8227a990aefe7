import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import type { Host } from "../../src/cli/host.ts";
import { runCli } from "../../src/cli/run.ts";

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StageOptions {
  readonly stdin?: string | Buffer;
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly columns?: number;
  /** Whether stdout and stderr are a terminal. */
  readonly terminal?: boolean;
  readonly signal?: AbortSignal;
  readonly now?: () => Date;
}

/** A home and a project of their own, in which command lines are run inside this process. */
export function stage() {
  const folder = mkdtempSync(join(tmpdir(), "cairn-cli-"));
  const home = join(folder, "home");
  const project = join(folder, "project");
  mkdirSync(home);
  mkdirSync(join(project, ".git"), { recursive: true });
  mkdirSync(join(project, "src", "deep"), { recursive: true });

  async function cairn(argv: readonly string[], options: StageOptions = {}): Promise<Outcome> {
    const stdout = sink(options);
    const stderr = sink(options);
    const host: Host = {
      stdin: Readable.from(options.stdin === undefined ? [] : [options.stdin]),
      stdout,
      stderr,
      env: options.env ?? {},
      cwd: options.cwd ?? project,
      home,
      now: options.now ?? (() => new Date()),
      signal: options.signal ?? new AbortController().signal,
    };
    const code = await runCli(argv, host);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  }

  return { folder, home, project, cairn, clear: () => rmSync(folder, { recursive: true, force: true }) };
}

function sink({ terminal = false, columns = 80 }: StageOptions) {
  let written = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += chunk.toString();
      done();
    },
  });
  return Object.assign(stream, { text: () => written, ...(terminal && { isTTY: true, columns }) });
}

const root = resolve(import.meta.dirname, "../..");

/** The built command; builds it first, which is quick when nothing changed. */
export function builtCommand(): string {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts", "build.mjs")], { encoding: "utf8" });
  if (status !== 0) throw new Error(`The build failed: ${stderr}`);
  return join(root, "dist", "bundle", "main.cjs");
}
