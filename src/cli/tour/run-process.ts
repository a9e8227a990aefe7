import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { CairnError } from "../../model/errors.ts";
import type { ProcessEnd } from "./steps.ts";

/** Starts a Node process and returns the lines that it printed. Kills it with SIGKILL after `killAfter` lines, if that is given. */
export async function runProcess(
  script: string,
  args: readonly string[],
  killAfter: number | undefined,
  signal: AbortSignal,
): Promise<ProcessEnd> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const kill = () => child.kill("SIGKILL");
  signal.addEventListener("abort", kill);
  let problem = "";
  child.stderr.on("data", (chunk) => {
    problem += chunk;
  });
  const ended = new Promise<{ code: number | null; name: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, name) => resolve({ code, name }));
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === killAfter) kill();
  }
  const { code, name } = await ended;
  signal.removeEventListener("abort", kill);
  signal.throwIfAborted();
  if (code) throw new CairnError("internal", `The tour stopped: a process exited with code ${code}. ${problem.slice(0, 500)}`);
  return { pid: child.pid ?? 0, lines, killed: name === "SIGKILL" };
}
