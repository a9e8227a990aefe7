import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { root } from "../frame.ts";

/** Starts the browser that the tests use too. */
export function startBrowser(): Promise<Browser> {
  const executablePath = execFileSync(join(root, "scripts", "chromium.sh"), ["path"], { encoding: "utf8" }).trim();
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-background-networking"] });
}
