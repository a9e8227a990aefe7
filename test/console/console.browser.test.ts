import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settle } from "../../bench/console/settle.ts";
import { SHOP } from "../../bench/console/world-runs.ts";
import { browserForTests, type Tab } from "./browser.ts";
import { type ConsoleServer, consoleServer } from "./console-server.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const IN_SHOP = `project=${encodeURIComponent(SHOP)}`;
const PAGES = [
  `#/timeline?${IN_SHOP}`,
  `#/timeline?${IN_SHOP}&deleted=1`,
  `#/search?${IN_SHOP}&q=rounding`,
  `#/sessions?${IN_SHOP}`,
  `#/knowledge?${IN_SHOP}&id=refused`,
  `#/code?${IN_SHOP}`,
  "#/runs",
  "#/runs?run=refund-17",
  "#/systems",
  "#/health",
];
const HOSTILE =
  '<img src=x onerror="document.title=1"><script>document.title="owned"</script>\u202Eright\u202C \u001b[31mred\u001b[0m \u0000';

let server: ConsoleServer;
const openTab = browserForTests();
beforeAll(async () => {
  server = await consoleServer("sqlite");
});
afterAll(() => server?.close());

async function withTab(options: Parameters<typeof openTab>[0], use: (tab: Tab) => Promise<void>): Promise<void> {
  const tab = await openTab(options);
  try {
    await use(tab);
    expect(tab.problems).toEqual([]);
  } finally {
    await tab.close();
  }
}

/** Returns the violations that axe finds. The script is added by the test's own channel: the page's policy would refuse it. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations: found } = (await page.evaluate("axe.run()")) as { violations: { id: string; nodes: { html: string }[] }[] };
  return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

describe("every page", () => {
  it.each([
    { width: 1280, scheme: "light" },
    { width: 1280, scheme: "dark" },
    { width: 360, scheme: "light" },
    { width: 360, scheme: "dark" },
  ] as const)("has no violation of axe and no sideways scrolling at $width px, $scheme", (options) =>
    withTab(options, async ({ page }) => {
      await server.visit(page, PAGES[0]!);
      const found: string[] = [];
      for (const hash of PAGES) {
        await page.goto(`${server.url}/${hash}`);
        await settle(page);
        found.push(...(await violations(page)).map((violation) => `${hash} ${violation}`));
        const pixels = Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
        if (pixels > 0) found.push(`${hash} is ${pixels} px too wide`);
      }
      expect(found).toEqual([]);
    }),
  );

  it("switches between light and dark, and remembers it", () =>
    withTab({ scheme: "light" }, async ({ page }) => {
      await server.visit(page);
      const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
      const light = await ground();
      await page.getByRole("button", { name: "Use dark colours" }).click();
      expect(await ground()).not.toBe(light);
      await page.reload();
      await page.getByRole("button", { name: "Use light colours" }).waitFor();
    }));
});

describe("the keyboard", () => {
  it("reaches everything: search, pages, rows, dialogs and the list of shortcuts", () =>
    withTab({}, async ({ page }) => {
      await server.visit(page, `#/timeline?${IN_SHOP}`);
      await settle(page);
      await page.keyboard.press("Tab");
      expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to content");
      await page.keyboard.press("Enter");
      expect(await page.evaluate("document.activeElement.id")).toBe("main");
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await page.keyboard.press("k");
      await page.keyboard.press("Enter");
      await page.getByText("The discount is applied before rounding there").waitFor();
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Next row").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("idempotency key");
      await page.getByRole("option", { name: /Payment webhooks arrive twice/ }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("region", { name: "Selected checkpoint" }).getByText("The provider repeats a webhook").waitFor();
      await page.keyboard.press("6");
      await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
      expect(page.url()).toContain(encodeURIComponent(SHOP).slice(0, 10));
    }));
});

describe("a hostile record", () => {
  it("is shown as text: scripts do not run, ten thousand characters fit, and directions stay inside", async () => {
    const long = `${HOSTILE} ${"x".repeat(9_000)}`.replaceAll("\u0000", "");
    const summary = HOSTILE.replaceAll("\u0000", "").slice(0, 200);
    await server.cairn.checkpoints.save({
      projectPath: "/hostile",
      summary,
      description: long,
      tags: ["<b>tag</b>"],
      context: { "<i>key": long.slice(0, 400) },
    });
    await server.cairn.knowledge.save({ projectPath: "/hostile", question: summary, answer: long, category: "<u>" });
    await withTab({ width: 360 }, async ({ page }) => {
      await server.visit(page, "#/timeline?project=%2Fhostile");
      await page.getByRole("button", { name: "<script>" }).click();
      await page.getByText("xxxxxxxxxx").first().waitFor();
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      for (const hash of ["#/search?project=%2Fhostile&q=script", "#/knowledge?project=%2Fhostile", "#/sessions?project=%2Fhostile"]) {
        await page.goto(`${server.url}/${hash}`);
        await settle(page);
        expect(await page.evaluate("document.querySelectorAll('main script, main img').length")).toBe(0);
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      }
      expect(await page.title()).not.toMatch(/owned|^1$/);
    });
  });
});

describe("signing in", () => {
  it("leaves the code of the link in no address and no link of the page", () =>
    withTab({}, async ({ page }) => {
      await server.visit(page, "#/timeline");
      await page.getByText("Cart totals are computed in cents").waitFor();
      expect(page.url()).not.toContain("code=");
      expect(await page.evaluate("document.documentElement.outerHTML")).not.toContain("code=");
    }));

  it("takes a key, shows what it may see, and ends with signing out", async () => {
    const { key } = await server.cairn.keys.create({ label: "reader", access: "read", projects: [SHOP] });
    const tab = await openTab();
    const { page } = tab;
    await page.goto(server.url);
    await page.getByLabel("Elsewhere, sign in with an API key").fill("cairn_000000000000_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This credential is not valid").waitFor();
    await page.getByLabel("Elsewhere, sign in with an API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("read only").waitFor();
    await page.getByText("Cart totals are computed in cents").waitFor();
    expect(await page.getByRole("navigation", { name: "Projects" }).getByRole("link").allTextContents()).toEqual([
      expect.stringContaining("All projects"),
      expect.stringContaining("shop"),
    ]);
    for (const hash of PAGES) {
      await page.goto(`${server.url}/${hash}`);
      await settle(page);
      for (const action of [
        "Edit",
        "Delete",
        "It helped",
        "Requeue",
        "Restore",
        "Revoke",
        "Back up everything",
        "Re-embed",
        "Take a snapshot",
        "Cancel",
        "Erase",
      ])
        expect([hash, action, await page.getByRole("button", { name: action, exact: true }).count()]).toEqual([hash, action, 0]);
    }
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Elsewhere, sign in with an API key").waitFor();
    await page.reload();
    await page.getByLabel("Elsewhere, sign in with an API key").waitFor();
    await tab.close();
  });

  it("asks again when the session ends", async () => {
    const { key, id } = await server.cairn.keys.create({ label: "short", access: "write", projects: [SHOP] });
    const tab = await openTab();
    await tab.page.goto(server.url);
    await tab.page.getByLabel("Elsewhere, sign in with an API key").fill(key);
    await tab.page.getByRole("button", { name: "Sign in" }).click();
    await tab.page.getByText("Cart totals are computed in cents").waitFor();
    await server.cairn.keys.revoke(id);
    await tab.page.getByRole("link", { name: "Knowledge" }).click();
    await tab.page.getByLabel("Elsewhere, sign in with an API key").waitFor();
    await tab.close();
  });
});
