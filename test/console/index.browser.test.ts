import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtCommand, stage } from "../cli/stage.ts";
import { localAuthorization } from "../support/local-token.ts";
import { killProcess, removeFolder } from "../support/processes.ts";
import { browserForTests } from "./browser.ts";

/** Enough files that a job can be seen and cancelled before its end. */
const FILES = 4_000;

const s = stage();
const openTab = browserForTests();
let project: string;
let child: ChildProcess;
let url: string;
let link: string;
const main = builtCommand();
const environment = () => ({
  PATH: process.env.PATH!,
  HOME: s.home,
  CAIRN_LOG_LEVEL: "warn",
  CAIRN_HTTP_PORT: "0",
  CAIRN_CODE_BATCH_FILES: "1",
});

beforeAll(async () => {
  project = realpathSync(s.project);
  writeFileSync(join(project, "src", "cart.ts"), "/** Adds the items of a cart. */\nexport function cartTotal() {\n  return 0;\n}\n");
  writeFileSync(join(project, "photo.png"), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1]));
  mkdirSync(join(project, "bulk"));
  for (let index = 0; index < FILES; index++)
    writeFileSync(
      join(project, "bulk", `part${index}.ts`),
      Array.from(
        { length: 10 },
        (_, line) => `export function part${index}of${line}(x: number) {\n  return x * ${index} + ${line};\n}\n`,
      ).join("\n"),
    );
  child = spawn(main, ["ui", "--no-open", "--json"], { cwd: s.home, env: environment(), stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout!), "line");
  link = JSON.parse(line).url;
  url = new URL(link).origin;
  await api("/v1/checkpoint/save", { project_path: project, summary: "The cart is next" });
});
afterAll(async () => {
  await killProcess(child);
  await removeFolder(s.folder);
});

/** Calls the server as the local user. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers and fail where a field is missing
async function api(path: string, body?: unknown): Promise<any> {
  const headers = { "content-type": "application/json", ...localAuthorization(join(s.home, ".cairn")) };
  const answer = await fetch(url + path, body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) });
  return answer.json();
}
const stats = () => api(`/stats?${new URLSearchParams({ project_path: project })}`);
const newestJob = async () => (await api("/v1/code/jobs", { project_path: project })).jobs[0];
const codePage = (page: Page) => page.goto(`${url}/#/code?project=${encodeURIComponent(project)}`);

describe("the button that indexes, in cairn ui", () => {
  it("starts a job, shows its progress, and the job can be cancelled", async () => {
    const { page, problems, close } = await openTab();
    await page.goto(link);
    await page.getByText("The cart is next").waitFor();
    await codePage(page);
    await page.getByRole("button", { name: "Index now" }).click();
    const dialog = page.getByRole("dialog", { name: "Index this folder?" });
    await dialog.getByText(project).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await newestJob()).toBeUndefined();
    await page.getByRole("button", { name: "Index now" }).click();
    await dialog.getByRole("button", { name: "Index", exact: true }).click();
    const jobs = page.getByRole("region", { name: "Index jobs" });
    await jobs.getByText(new RegExp(`of ${(FILES + 1).toLocaleString("en")} files`)).waitFor();
    await jobs.getByRole("progressbar", { name: "Progress of the job" }).waitFor();
    await page.getByRole("button", { name: "Indexing…" }).waitFor();
    await jobs.getByRole("button", { name: "Cancel" }).click();
    await jobs.getByText("cancelled", { exact: true }).waitFor();
    expect(await newestJob()).toMatchObject({ status: "cancelled" });
    const { files } = await stats();
    expect(files).toBeLessThan(FILES);
    expect(problems).toEqual([]);
    await close();
  });

  it("indexes again: what was removed, what was left over, and a changed file", async () => {
    rmSync(join(project, "bulk"), { recursive: true });
    const { page, problems, close } = await openTab();
    const answer = await api("/session/code", {});
    await page.goto(`${url}/#/timeline?code=${answer.code}`);
    await page.getByText("The cart is next").waitFor();
    await codePage(page);
    const jobs = page.getByRole("region", { name: "Index jobs" });
    await page.getByRole("button", { name: /^Index (again|now)$/ }).click();
    const dialog = page.getByRole("dialog", { name: "Index this folder?" });
    await dialog.or(jobs.getByText("completed", { exact: true })).waitFor();
    if (await dialog.isVisible()) await dialog.getByRole("button", { name: "Index", exact: true }).click();
    await jobs.getByText("completed", { exact: true }).waitFor();
    expect(await stats()).toMatchObject({ files: 1 });
    await jobs.getByText("photo.png").first().waitFor();

    writeFileSync(join(project, "src", "cart.ts"), "/** Adds items. */\nexport function sumOfItems() {\n  return 1;\n}\n");
    await page.getByRole("button", { name: "Index again" }).click();
    await page.getByRole("dialog", { name: "Index this folder?" }).getByRole("button", { name: "Index", exact: true }).click();
    await jobs.getByText("completed", { exact: true }).nth(1).waitFor();
    expect(await newestJob()).toMatchObject({ status: "completed", counts: { indexed: 1 } });
    const found = await api("/usages", { project_path: project, symbol: "sumOfItems" });
    expect(JSON.stringify(found)).toContain("src/cart.ts");
    await page.getByLabel("Search code").fill("sumOfItems");
    await page
      .getByRole("link", { name: /src\/cart\.ts/ })
      .first()
      .waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it("is absent for an API key, which sees the command", async () => {
    const { key } = await api("/v1/key/create", { label: "editor", access: "admin", all_projects: true });
    const { page, close } = await openTab();
    await page.goto(url);
    await page.getByLabel("Elsewhere, sign in with an API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The cart is next").waitFor();
    await codePage(page);
    await page.getByText(`cairn code index --project ${project} --wait`).waitFor();
    expect(await page.getByRole("button", { name: /^Index/ }).count()).toBe(0);
    await close();
  });
});
