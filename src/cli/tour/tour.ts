import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import type { Config } from "../../config/schema.ts";
import { builtFile } from "../../files/built-file.ts";
import { CairnError } from "../../model/errors.ts";
import { localToken } from "../../stores/file/local-token.ts";
import { shellWord } from "../../text/shell-word.ts";
import { EXIT_ATTENTION } from "../exit-code.ts";
import { type Host, print } from "../host.ts";
import { type LocalServer, startServer } from "../server.ts";
import { styleFor } from "../terminal/style.ts";
import { wrapText } from "../terminal/width.ts";
import { connectText } from "./connect.ts";
import { runProcess } from "./run-process.ts";
import { writeSampleProject } from "./sample-project.ts";
import { type Tour, tourSteps } from "./steps.ts";

export interface TourOptions {
  readonly host: Host;
  readonly config: Config;
  /** Ends after the tour instead of serving. */
  readonly once: boolean;
  /** Runs a command line. */
  readonly run: (argv: readonly string[], host: Host) => Promise<number>;
  /** Called after the last step, with the address if the server stays. */
  readonly onDone: (result: { readonly steps: readonly string[]; readonly url?: string }) => void;
}

/** Runs the guided tour. Each step is executed on separate data, which is removed at the end. */
export async function runTour({ host, config, once: endAfter, run, onDone }: TourOptions): Promise<void> {
  const style = styleFor(host.stdout, host.env);
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-tour-"));
  let server: LocalServer | undefined;
  try {
    const project = writeSampleProject(dataDir);
    const embedder = { ...config.embedder, kind: "auto" as const };
    const serving = await startOnFreePort({ ...config, dataDir, embedder, storage: "sqlite", log: { level: "warn" } }, endAfter);
    server = serving.server;
    print(
      host,
      `${style.bold("Cairn")}: durable memory for AI agents. A tour of a minute.\n${style.dim(wrapTo(host, "Everything below is executed, on a sample project and data that are removed at the end."))}`,
    );
    const tour = guide(host, dataDir, project, server.url, run);
    for (const [index, step] of tourSteps.entries()) {
      host.signal.throwIfAborted();
      print(host, `\n${style.bold(`${index + 1}/${tourSteps.length} ${step.title}`)}\n${style.dim(wrapTo(host, step.why))}`);
      await step.run(tour);
    }
    onDone({ steps: tourSteps.map(({ title }) => title), ...(!endAfter && { url: server.url }) });
    if (endAfter)
      return print(
        host,
        `\n${style.green("End of the tour.")} Without --once it continues to serve the console, HTTP, MCP and the API page.`,
      );
    if (serving.isOtherPort) print(host, `\nPort ${config.http.port} is in use; serving on port ${server.port}.`);
    print(host, `\n${connectText(server.url, dataDir, style)}`);
    if (!host.signal.aborted) await once(host.signal, "abort");
  } finally {
    await server?.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Starts the server on the configured port, or on another port if that is in use. */
async function startOnFreePort(config: Config, anyPort: boolean): Promise<{ server: LocalServer; isOtherPort: boolean }> {
  const onAny: Config = { ...config, http: { ...config.http, port: 0 } };
  if (anyPort) return { server: await startServer(onAny), isOtherPort: false };
  try {
    return { server: await startServer(config), isOtherPort: false };
  } catch (error) {
    const inUse = error instanceof CairnError && (error.cause as NodeJS.ErrnoException | undefined)?.code === "EADDRINUSE";
    if (!inUse) throw error;
    return { server: await startServer(onAny), isOtherPort: true };
  }
}

function guide(host: Host, dataDir: string, project: string, url: string, run: TourOptions["run"]): Tour {
  const style = styleFor(host.stdout, host.env);
  const indent = (text: string) => text.trimEnd().replace(/^/gm, "  ");
  // A separate environment: the settings of the user must not affect the tour, nor the tour them.
  const env = { ...host.env, CAIRN_DATA_DIR: dataDir, CAIRN_STORAGE: "sqlite", CAIRN_POSTGRES_URL: "", CAIRN_EMBEDDER_KIND: "auto" };
  const execute = async (args: readonly string[]) => {
    const { stdout, text } = recorder(host);
    const code = await run([...args, "--project", project], { ...host, stdout, env });
    if (code !== 0 && code !== EXIT_ATTENTION)
      throw new CairnError("internal", `The tour stopped: cairn ${args.join(" ")} exited with code ${code}.`);
    return text();
  };
  const prompt = (line: string) => print(host, `\n${style.green(`  $ ${line}`)}`);
  return {
    project,
    dataDir,
    show: (text) => print(host, indent(wrapTo(host, text, 2))),
    async cairn(...args) {
      prompt(["cairn", ...args.map(shellWord)].join(" "));
      const text = await execute(args);
      print(host, indent(wrapTo(host, text, 2)));
      return text;
    },
    async ask(...args) {
      prompt(["cairn", ...args.map(shellWord)].join(" "));
      return JSON.parse(await execute([...args, "--json"]));
    },
    runProcess: (worker, args, lines) => runProcess(builtFile(`cli/tour/${worker}.js`), args, lines, host.signal),
    async post(path, body) {
      const json = JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${await localToken({ dataDir }).readOrCreate()}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      };
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: json, signal: host.signal });
      const answer = await response.text();
      if (!response.ok)
        throw new CairnError("internal", `The tour stopped: ${path} returned status ${response.status}.`, { details: { answer } });
      // An event stream has the response as the data of its only event.
      return JSON.parse(/^data: (.*)$/m.exec(answer)?.[1] ?? answer);
    },
  };
}

/** Wraps lines at spaces, as far as the terminal is narrower. A line with styles was made for its width. */
function wrapTo({ stdout }: Host, text: string, indented = 0): string {
  const { columns } = stdout;
  if (columns === undefined) return text;
  return text
    .split("\n")
    .flatMap((line) => (line.includes("\u001B") ? [line] : wrapText(line, columns - indented)))
    .join("\n");
}

/** Returns a stdout that records its output, narrower by the indent. */
function recorder({ stdout: real }: Host) {
  let written = "";
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      written += chunk;
      done();
    },
  });
  return {
    stdout: Object.assign(stdout, real.isTTY ? { isTTY: true, columns: Math.max(40, (real.columns ?? 80) - 2) } : {}),
    text: () => written,
  };
}
