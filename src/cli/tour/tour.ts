import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import type { Config } from "../../config/schema.ts";
import { CairnError } from "../../model/errors.ts";
import { localToken } from "../../stores/file/local-token.ts";
import { shellWord } from "../../text/shell-word.ts";
import { EXIT_ATTENTION } from "../exit-code.ts";
import { type Host, print } from "../host.ts";
import { type LocalServer, startServer } from "../server.ts";
import { styleFor } from "../terminal/style.ts";
import { connectText } from "./connect.ts";
import { type Tour, tourSteps } from "./steps.ts";

export interface TourOptions {
  readonly host: Host;
  readonly config: Config;
  readonly project: string;
  /** Ends after the tour isOtherPort of serving. */
  readonly once: boolean;
  /** Runs a command line. */
  readonly run: (argv: readonly string[], host: Host) => Promise<number>;
  /** Called after the last step, with the address if the server stays. */
  readonly onDone: (result: { readonly steps: readonly string[]; readonly url?: string }) => void;
}

/** Runs the guided tour. Each step is executed on separate data, which is removed at the end. */
export async function runTour({ host, config, project, once: endAfter, run, onDone }: TourOptions): Promise<void> {
  const style = styleFor(host.stdout, host.env);
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-tour-"));
  let server: LocalServer | undefined;
  try {
    const serving = await startOnFreePort({ ...config, dataDir, storage: "sqlite", log: { level: "warn" } }, endAfter);
    server = serving.server;
    print(
      host,
      `${style.bold("Cairn")}: durable memory for AI agents. A short tour, on ${project}\n${style.dim("Every command below is executed, on separate data that is removed at the end.")}`,
    );
    const tour = guide(host, dataDir, project, server.url, run);
    for (const [index, step] of tourSteps.entries()) {
      host.signal.throwIfAborted();
      print(host, `\n${style.bold(`${index + 1}/${tourSteps.length} ${step.title}`)}\n${style.dim(step.why)}`);
      await step.run(tour);
    }
    onDone({ steps: tourSteps.map(({ title }) => title), ...(!endAfter && { url: server.url }) });
    if (endAfter)
      return print(host, `\n${style.green("End of the tour.")} Without --once it continues to serve HTTP, MCP and the API page.`);
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
  const prompt = (line: string) => print(host, `\n${style.green(`  $ ${line}`)}`);
  return {
    project,
    url,
    show: (text) => print(host, indent(text)),
    async cairn(...args) {
      prompt(["cairn", ...args.map(shellWord)].join(" "));
      const { stdout, text } = recorder(host);
      // A separate environment: the settings of the user must not affect the tour, nor the tour them.
      const env = { ...host.env, CAIRN_DATA_DIR: dataDir, CAIRN_STORAGE: "sqlite", CAIRN_POSTGRES_URL: "" };
      const code = await run([...args, "--project", project], { ...host, stdout, env });
      if (code !== 0 && code !== EXIT_ATTENTION)
        throw new CairnError("internal", `The tour stopped: cairn ${args.join(" ")} exited with code ${code}.`);
      print(host, indent(text()));
      return text();
    },
    async post(path, body) {
      const json = JSON.stringify(body);
      const mcp = path === "/mcp" ? " -H 'accept: application/json, text/event-stream'" : "";
      prompt(`curl -s ${url}${path} -H "authorization: Bearer $(cairn token)" -H 'content-type: application/json'${mcp} -d '${json}'`);
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
