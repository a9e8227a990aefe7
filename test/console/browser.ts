import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Browser, type BrowserContext, type ConsoleMessage, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { countCalls } from "../../bench/console/settle.ts";

const root = resolve(import.meta.dirname, "../..");

/** Returns the path of a browser: an installed one, or one that the script unpacks into a cache. */
function browserPath(): string {
  if (process.platform !== "win32") return execFileSync(join(root, "scripts/chromium.sh"), ["path"], { encoding: "utf8" }).trim();
  const folders = [process.env.PROGRAMFILES, process.env["PROGRAMFILES(X86)"], process.env.LOCALAPPDATA];
  const programs = ["Google\\Chrome\\Application\\chrome.exe", "Microsoft\\Edge\\Application\\msedge.exe"];
  const found = [process.env.CAIRN_TEST_CHROMIUM, ...folders.flatMap((folder) => programs.map((program) => `${folder}\\${program}`))];
  const path = found.find((candidate) => candidate !== undefined && existsSync(candidate));
  if (!path)
    throw new Error("The tests of the console need Chrome or Edge. Install one, set CAIRN_TEST_CHROMIUM, or run npm run test:fast.");
  return path;
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/** Starts a browser for the tests of a file. Returns the function that opens pages; each has a profile of its own. */
export function browserForTests(): (options?: PageOptions) => Promise<Tab> {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox", "--disable-background-networking"] });
  });
  afterAll(() => browser?.close());
  return async ({ width = 1280, height = 800, scheme = "light" } = {}) => {
    const context = await browser!.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    context.setDefaultTimeout(200_000); // a busy machine is many times slower than an idle one
    const page = await context.newPage();
    await countCalls(page);
    return tabOf(context, page);
  };
}

export interface Tab {
  readonly page: Page;
  /** What the browser reported: errors of scripts, violations of the content security policy, refused requests. */
  readonly problems: readonly string[];
  readonly hosts: ReadonlySet<string>;
  close(): Promise<void>;
}

function tabOf(context: BrowserContext, page: Page): Tab {
  const problems: string[] = [];
  const hosts = new Set<string>();
  page.on("console", (message) => message.type() === "error" && !isMissingRecord(message) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  return { page, problems, hosts, close: () => context.close() };
}

/** A record that was deleted after its event was sent: the page reads it, finds nothing and leaves it out. The browser logs that all the same. */
function isMissingRecord(message: ConsoleMessage): boolean {
  return /\/v1\/(checkpoint|knowledge)\/get$/.test(message.location().url) && /status of 404/.test(message.text());
}
