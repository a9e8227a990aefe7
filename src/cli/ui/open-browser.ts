import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../host.ts";

/** Milliseconds until the file with the link is deleted. The browser has read it by then. */
const KEEP_MS = 10_000;

/**
 * Opens a link in the browser. Returns whether there is one, and when the link's file is gone. The link signs in, and other users of this
 * machine can read command lines, so the browser gets a file that only this user may read. The file is not in a hidden folder: browsers
 * that are installed as snaps cannot read those.
 */
export function openBrowser(
  url: string,
  { env, home }: Pick<Host, "env" | "home">,
): { readonly isOpen: boolean; readonly done: Promise<void> } {
  const opener = openerOf(process.platform, env);
  if (!opener) return { isOpen: false, done: Promise.resolve() };
  const folder = mkdtempSync(join(home, "cairn-ui-"));
  const file = join(folder, "open.html");
  writeFileSync(file, redirectPage(url), { mode: 0o600 });
  const [command, ...args] = opener;
  const child = spawn(command!, [...args, file], { stdio: "ignore", detached: true, env: env as NodeJS.ProcessEnv });
  child.on("error", () => {}); // the link is printed too
  child.unref();
  const done = new Promise<void>((resolve) => {
    setTimeout(() => {
      rmSync(folder, { recursive: true, force: true });
      resolve();
    }, KEEP_MS);
  });
  return { isOpen: true, done };
}

/** Returns the command that opens a file in the browser; `undefined` without a desktop, such as over SSH. */
export function openerOf(platform: NodeJS.Platform, env: Host["env"]): readonly string[] | undefined {
  if (env.SSH_CONNECTION !== undefined && env.DISPLAY === undefined) return undefined;
  if (platform === "darwin") return ["open"];
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return env.DISPLAY !== undefined || env.WAYLAND_DISPLAY !== undefined ? ["xdg-open"] : undefined;
}

function redirectPage(url: string): string {
  const escaped = url.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${escaped}"><title>Cairn</title><a href="${escaped}">Open the console</a>\n`;
}
