import { once } from "node:events";
import type { Config } from "../../config/schema.ts";
import { CairnError } from "../../model/errors.ts";
import { localToken } from "../../stores/file/local-token.ts";
import { serverRecord } from "../../stores/file/server-record.ts";
import type { Command } from "../command.ts";
import { print, printJson } from "../host.ts";
import { type LocalServer, startServer } from "../server.ts";
import { styleFor } from "../terminal/style.ts";
import { openBrowser } from "./open-browser.ts";

/** How long a running server may take to answer. */
const ANSWER_MS = 5_000;

/** `cairn ui`: opens the console in the browser. Uses the server that runs, or starts one until stopped. */
export const uiCommand: Command = {
  path: ["ui"],
  summary: "Open the console in the browser.",
  description:
    "Uses the server that is running, or serves until stopped with Ctrl-C. The link signs this browser in; it works once, for a minute. Without a browser, only the link is printed.",
  flags: [{ name: "no-open", kind: "switch", description: "Only print the link.", fallback: false }],
  positional: [],
  examples: ["cairn ui", "cairn ui --project ~/work/parser", "cairn ui --no-open"],
  usesProject: true,
  async run({ host, json, values, config, project }) {
    const { config: settings } = config();
    const selected = values.project === undefined ? undefined : project().repository;
    const running = serverRecord(settings).read();
    const link = running === undefined ? undefined : await requestLink(running, settings, selected).catch(() => undefined);
    const server = link === undefined ? await startHere(settings) : undefined;
    try {
      const url = link ?? (await requestLink(server!.url, settings, selected));
      const browser = values["no-open"] === true ? undefined : openBrowser(url, host);
      if (json) printJson(host, { url, opened: browser?.isOpen ?? false, started: server !== undefined });
      else print(host, describe(url, browser?.isOpen ?? false, server !== undefined, styleFor(host.stdout, host.env).bold));
      if (server && !host.signal.aborted) await once(host.signal, "abort");
      else await browser?.done;
    } finally {
      await server?.close();
    }
  },
};

function describe(url: string, isOpen: boolean, isStarted: boolean, bold: (text: string) => string): string {
  const lead = isOpen ? "The console opens in your browser. If it does not, open this link:" : "Open this link in a browser:";
  return [lead, `  ${bold(url)}`, "It works once, within a minute.", ...(isStarted ? ["", "Stop with Ctrl-C."] : [])].join("\n");
}

/** Starts a server at the configured port, or at a free one where another program has it. */
async function startHere(config: Config): Promise<LocalServer> {
  try {
    return await startServer(config);
  } catch (error) {
    if (!(error instanceof CairnError) || (error.cause as NodeJS.ErrnoException | undefined)?.code !== "EADDRINUSE") throw error;
    return startServer({ ...config, http: { ...config.http, port: 0 } });
  }
}

/** Returns a link that signs in once. The code is after the hash, so that it reaches no log and no other server. */
async function requestLink(url: string, config: Config, project: string | undefined): Promise<string> {
  const token = await localToken(config).readOrCreate();
  const answer = await fetch(`${url}/session/code`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    redirect: "error",
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  if (!answer.ok) throw new CairnError("unavailable", `The server at ${url} refused to open the console (${answer.status}). Restart it.`);
  const { code } = (await answer.json()) as { readonly code: string };
  const params = new URLSearchParams({ ...(project !== undefined && { project }), code });
  return `${url}/#/timeline?${params}`;
}
