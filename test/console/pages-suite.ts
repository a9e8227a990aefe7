import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settle } from "../../bench/console/settle.ts";
import { refund, SHOP } from "../../bench/console/world-runs.ts";
import { newRun } from "../../src/testing/run-samples.ts";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { browserForTests, type PageOptions, type Tab } from "./browser.ts";
import { type ConsoleServer, consoleServer } from "./console-server.ts";

const IN_SHOP = `project=${encodeURIComponent(SHOP)}`;

/** Shows every page on real records of a storage, and checks the effect of every action in the store. */
export function pagesSuite(name: string, storage: () => Promise<{ readonly url: string; drop(): Promise<void> }>): void {
  describe(`the console on ${name}`, () => {
    let server: ConsoleServer;
    let drop = async () => {};
    const openTab = browserForTests();
    beforeAll(async () => {
      const { url, drop: dropStorage } = await storage();
      drop = dropStorage;
      server = await consoleServer(url);
    });
    afterAll(async () => {
      await server?.close();
      await drop();
    });

    /** Opens a page, runs the test, and checks that the browser reported nothing and talked to no other host. */
    async function visit(hash: string, use: (page: Page) => Promise<void>, options: PageOptions = {}): Promise<void> {
      const tab: Tab = await openTab(options);
      try {
        await server.visit(tab.page, hash);
        await use(tab.page);
        expect(tab.problems).toEqual([]);
        expect([...tab.hosts]).toEqual([new URL(server.url).host]);
      } finally {
        await tab.close();
      }
    }

    it("shows the timeline by day across projects, filters it and keeps the filter in the address", () =>
      visit("#/timeline", async (page) => {
        await page.getByText("Cart totals are computed in cents").waitFor();
        await page.getByRole("heading", { name: "Today" }).waitFor();
        await page.getByRole("link", { name: "cart", exact: true }).first().click();
        await page.getByRole("button", { name: "Remove filter tag cart" }).waitFor();
        await expect.poll(() => page.getByText("Users were logged out").count()).toBe(0);
        expect(page.url()).toContain("tag=cart");
        await page.goBack();
        await page.getByText("Users were logged out").waitFor();
        await page.getByRole("navigation", { name: "Projects" }).getByRole("link", { name: "parser" }).click();
        await page.getByText("Parser: step 1 is done").waitFor();
        expect(await page.getByText("Cart totals are computed").count()).toBe(0);
      }));

    it("narrows the timeline by branch, session, tag, days and text", () =>
      visit(`#/timeline?${IN_SHOP}&branch=payments`, async (page) => {
        const summaries = () => page.locator("article .card-summary").allTextContents();
        await expect.poll(summaries).toEqual([expect.stringContaining("Payment webhooks arrive twice")]);
        await page.getByRole("button", { name: "Remove filter branch payments" }).click();
        await page.getByLabel("Filter by tag").selectOption("login");
        await expect.poll(async () => (await summaries()).length).toBe(2);
        await page.getByRole("button", { name: "Remove filter tag login" }).click();
        await page.getByLabel("Filter by text").fill("idempotency");
        await expect.poll(summaries).toEqual([expect.stringContaining("Payment webhooks arrive twice")]);
        await page.getByRole("slider", { name: "1 checkpoint in 60 days" }).waitFor();
        await page.getByLabel("Filter by text").fill("");
        await page.getByLabel("To", { exact: true }).fill(new Date(Date.now() - 6 * 86_400_000).toISOString().slice(0, 10));
        await expect
          .poll(summaries)
          .toEqual([expect.stringContaining("Payment webhooks"), expect.stringContaining("Invoices are rendered")]);
      }));

    it("counts the checkpoints of each day, and selects days by dragging over them", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const chart = page.getByRole("slider", { name: "10 checkpoints in 60 days" });
        await chart.waitFor();
        const { x, y, width } = (await chart.boundingBox())!;
        await page.mouse.move(x + width - 2, y + 20);
        await page.mouse.down();
        await page.mouse.move(x + width - 4, y + 20);
        await page.mouse.up();
        await expect.poll(() => page.url()).toMatch(/from=\d{4}-\d\d-\d\d&to=/);
        await expect.poll(() => page.getByText("Invoices are rendered on the server").count()).toBe(0);
        await page.getByRole("button", { name: "All days" }).click();
        await page.getByText("Invoices are rendered on the server").waitFor();
        expect(page.url()).not.toContain("from=");
      }));

    it("selects days of the chart by keyboard", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const chart = page.getByRole("slider", { name: "10 checkpoints in 60 days" });
        await chart.focus();
        for (const key of ["ArrowLeft", "Shift+ArrowRight", "Shift+ArrowLeft", "Shift+ArrowLeft"]) await page.keyboard.press(key);
        expect(await chart.getAttribute("aria-valuetext")).toMatch(/^\w+ \d+ \w+ to Yesterday: \d+ checkpoints?$/);
        await chart.getByText("Enter selects").waitFor();
        await page.keyboard.press("Enter");
        await expect.poll(() => page.url()).toMatch(/from=\d{4}-\d\d-\d\d&to=/);
        const { from, to } = Object.fromEntries(new URLSearchParams(page.url().split("?")[1]));
        expect((Date.parse(to!) - Date.parse(from!)) / 86_400_000).toBe(1);
        await expect.poll(() => page.getByText("Invoices are rendered on the server").count()).toBe(0);
        await page.keyboard.press("Escape");
        await expect.poll(() => page.url()).not.toContain("from=");
      }));

    it("shows what another program saves, without a reload", () =>
      visit("#/timeline", async (page) => {
        await page.getByText("Cart totals are computed in cents").waitFor();
        await server.cairn.checkpoints.save({ projectPath: "/home/me/new", summary: "Saved while the page is open" });
        await page.getByRole("article").filter({ hasText: "Saved while the page is open" }).waitFor();
        await page.getByRole("navigation", { name: "Projects" }).getByRole("link", { name: "new 1" }).waitFor();
      }));

    it("shows what another program deletes, and steps of runs, while the page is open", async () => {
      const { id } = await server.cairn.checkpoints.save({ projectPath: SHOP, summary: "Deleted by another program" });
      await visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const card = page.getByRole("article").filter({ hasText: "Deleted by another program" });
        await card.waitFor();
        await server.cairn.checkpoints.delete({ projectPath: SHOP, id });
        await card.waitFor({ state: "detached" });
      });
      await visit("#/runs", async (page) => {
        await page.getByRole("link", { name: "refund-17" }).waitFor();
        const { store } = server.cairn.runs;
        const lease = await store.start(newRun("live-1", { leaseMs: 60_000 }));
        const row = page.getByRole("article").filter({ hasText: "live-1" });
        await row.getByText("running", { exact: true }).waitFor();
        await store.release(lease, { status: "failed", note: "Stopped by the test" });
        await row.getByText("failed", { exact: true }).waitFor();
        await store.deleteRun("live-1");
        await row.waitFor({ state: "detached" });
        const burst = Array.from({ length: 30 }, (_, index) => `burst-${index}`);
        await Promise.all(burst.map((id) => store.start(newRun(id, { leaseMs: 60_000 }))));
        await expect.poll(() => page.getByRole("article").filter({ hasText: "burst-" }).count()).toBe(30);
        for (const id of burst) await store.deleteRun(id);
        await expect.poll(() => page.getByRole("article").filter({ hasText: "burst-" }).count()).toBe(0);
      });
    });

    it("shows what another program deletes before the page follows changes", async () => {
      const { id } = await server.cairn.checkpoints.save({ projectPath: SHOP, summary: "Deleted before the stream is open" });
      const tab: Tab = await openTab({});
      try {
        const card = tab.page.getByRole("article").filter({ hasText: "Deleted before the stream is open" });
        const deleted = new Promise<void>((resolve) => {
          void tab.page.route("**/v1/events", async (route) => {
            await card.waitFor();
            await server.cairn.checkpoints.delete({ projectPath: SHOP, id });
            await route.continue();
            resolve();
          });
        });
        await server.visit(tab.page, `#/timeline?${IN_SHOP}`);
        await deleted;
        await card.waitFor({ state: "detached" });
      } finally {
        await tab.close();
      }
    });

    it("edits a checkpoint and copies its resume text", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const card = page.getByRole("article").filter({ hasText: "Staging runs on the new cluster" });
        await card.getByRole("button", { name: "Copy resume text" }).click();
        await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toContain("Staging runs on the new cluster");
        await card.getByRole("button", { name: "Edit" }).click();
        await page.getByRole("dialog").getByLabel("Summary").fill("Production runs on the new cluster");
        await page.getByRole("dialog").getByLabel("Tags").fill("deploy, done");
        await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
        await page.getByText("Production runs on the new cluster").waitFor();
        const { checkpoints } = await server.cairn.checkpoints.list({ projectPath: SHOP, tags: ["done"] });
        expect(checkpoints).toMatchObject([{ summary: "Production runs on the new cluster", tags: ["deploy", "done"] }]);
      }));

    it("shows and edits the whole text of a record of a long list", async () => {
      const projectPath = `${SHOP}/long-list`;
      const description = (index: number) => `Start of ${index}. ${"A sentence about the work of that day. ".repeat(40)}End of ${index}.`;
      for (let index = 0; index < 40; index++)
        await server.cairn.checkpoints.save({
          projectPath,
          summary: `Long note ${index}`,
          description: description(index),
          context: { branch: "main" },
        });
      await visit(`#/timeline?project=${encodeURIComponent(projectPath)}`, async (page) => {
        const card = page.getByRole("article").filter({ has: page.getByText("Long note 7", { exact: true }) });
        await card.getByRole("button", { name: "Long note 7" }).click();
        await card.getByText("End of 7.").waitFor();
        await card.getByRole("button", { name: "Edit" }).click();
        await page.getByRole("dialog").getByLabel("Tags").fill("seen");
        await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
        await page.getByText("Checkpoint saved.").waitFor();
      });
      const { checkpoints } = await server.cairn.checkpoints.list({ projectPath, tags: ["seen"] });
      expect(checkpoints).toMatchObject([{ description: description(7).trim(), context: { branch: "main" } }]);
    });

    it("deletes a checkpoint, and undo brings it back", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const card = page.getByRole("article").filter({ hasText: "Invoices are rendered on the server" });
        const stored = async () => {
          const { checkpoints } = await server.cairn.checkpoints.list({ projectPath: SHOP, tags: ["invoices"] });
          return checkpoints.length;
        };
        await card.getByRole("button", { name: "Delete" }).click();
        await expect.poll(() => card.count()).toBe(0);
        expect(await stored()).toBe(0);
        await page.getByRole("button", { name: "Undo" }).click();
        await card.waitFor();
        expect(await stored()).toBe(1);
      }));

    it("brings back a deleted record by the key u, in a page that is used by keyboard alone", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        const { total } = await server.cairn.checkpoints.list({ projectPath: SHOP });
        const card = page.getByRole("article").filter({ hasText: "Payment webhooks arrive twice" });
        await card.getByRole("button", { name: "Delete" }).focus();
        await page.keyboard.press("Enter");
        await page.getByText("Checkpoint deleted.").waitFor();
        await card.waitFor({ state: "detached" });
        expect((await server.cairn.checkpoints.list({ projectPath: SHOP })).total).toBe(total - 1);
        await page.keyboard.press("u");
        await page.getByText("Checkpoint restored.").waitFor();
        await card.waitFor();
        expect((await server.cairn.checkpoints.list({ projectPath: SHOP })).total).toBe(total);
        await page.keyboard.press("u"); // the message is gone, so nothing is left to undo
        expect((await server.cairn.checkpoints.list({ projectPath: SHOP })).total).toBe(total);
      }));

    it("lists deleted records, restores one and erases one", async () => {
      const saved: { readonly id: string }[] = [];
      for (const summary of ["Deleted by mistake", "Deleted for good"])
        saved.push(await server.cairn.checkpoints.save({ projectPath: SHOP, summary, tags: ["deleted"] }));
      for (const { id } of saved) await server.cairn.checkpoints.delete({ projectPath: SHOP, id });
      await server.cairn.knowledge.save({
        projectPath: SHOP,
        id: "old",
        kind: "faq",
        category: "x",
        question: "Old question?",
        answer: "Old.",
      });
      await server.cairn.knowledge.delete({ projectPath: SHOP, id: "old" });
      await visit(`#/timeline?${IN_SHOP}`, async (page) => {
        await page.getByRole("link", { name: "Deleted" }).click();
        const row = (text: string) => page.getByRole("region", { name: "Deleted" }).getByRole("listitem").filter({ hasText: text });
        await row("Deleted for good").getByRole("button", { name: "Erase" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Erase" }).click();
        await row("Deleted for good").waitFor({ state: "detached" });
        await page.getByText("Record erased for good.").waitFor();
        await row("Deleted by mistake").getByRole("button", { name: "Restore" }).click();
        await row("Deleted by mistake").waitFor({ state: "detached" });
        const { checkpoints } = await server.cairn.checkpoints.list({ projectPath: SHOP, tags: ["deleted"] });
        expect(checkpoints).toMatchObject([{ summary: "Deleted by mistake" }]);
        await expect(server.cairn.checkpoints.restore({ projectPath: SHOP, id: saved[1]!.id })).rejects.toMatchObject({
          code: "not_found",
        });
        await page.goto(`${server.url}/#/knowledge?${IN_SHOP}&deleted=1`);
        await row("Old question?").getByRole("button", { name: "Restore" }).click();
        await row("Old question?").waitFor({ state: "detached" });
        expect(await server.cairn.knowledge.get({ projectPath: SHOP, id: "old" })).toMatchObject({ answer: "Old." });
      });
      await server.cairn.checkpoints.delete({ projectPath: SHOP, id: saved[0]!.id });
      await server.cairn.knowledge.delete({ projectPath: SHOP, id: "old" });
    });

    it("compares two checkpoints", () =>
      visit(`#/timeline?${IN_SHOP}`, async (page) => {
        for (const text of ["Discounts are applied per line", "Cart totals are computed"])
          await page.getByRole("article").filter({ hasText: text }).getByLabel("Compare").check();
        await page.getByRole("button", { name: "Compare" }).click();
        const difference = page.getByRole("group", { name: "Difference" });
        await difference.locator("del", { hasText: "Discounts are applied" }).waitFor();
        await difference.locator("ins", { hasText: "Cart totals" }).waitFor();
      }));

    it("shows why a checkpoint was found, and what an agent receives", () =>
      visit(`#/search?${IN_SHOP}&q=rounding+of+totals`, async (page) => {
        const hit = page
          .getByRole("region", { name: "Hits" })
          .getByRole("article")
          .filter({ hasText: "Cart totals are computed in cents" });
        await hit.waitFor();
        expect(await hit.locator("mark").allTextContents()).toEqual(expect.arrayContaining(["totals", "rounding"]));
        expect(await hit.getByTitle(/^keyword: rank/).count()).toBe(1);
        expect(await hit.getByTitle(/^semantic: rank/).count()).toBe(1);
        await page.getByText("Keyword bars show the share of the best keyword score").waitFor();
        expect(await hit.getByTitle(/^keyword: rank 1,/).textContent()).toBe("keywordrank 1, 100 % of the best");
        expect(await hit.getByTitle(/^semantic: rank/).textContent()).toMatch(/^semanticrank \d+, 0\.\d\d of 1$/);
        const agent = page.getByRole("region", { name: "What an agent receives" });
        await agent.getByText("Cart totals are computed in cents").waitFor();
        await agent.getByText(/about \d+ tokens/).waitFor();
        await page.getByLabel("knowledge").check();
        await page.getByRole("region", { name: "Hits" }).getByText("How are totals rounded?").waitFor();
        await page.getByLabel("code").check();
        await page.getByRole("region", { name: "Hits" }).getByText("src/cart/").first().waitFor();
      }));

    it("groups checkpoints by session, and previews what the next session receives", () =>
      visit(`#/sessions?${IN_SHOP}`, async (page) => {
        await page.getByText("3 checkpoints").first().click();
        await page.getByRole("article").filter({ hasText: "Discounts are applied per line" }).waitFor();
        const preview = page.getByRole("region", { name: "What the next session receives" });
        await preview.getByText("What the next session receives at its start").click();
        await preview.getByText("These are notes of earlier sessions").waitFor();
        await preview.getByText("Cart totals are computed in cents").waitFor();
      }));

    it("edits knowledge, records feedback and lists imports by source", () =>
      visit(`#/knowledge?${IN_SHOP}`, async (page) => {
        await page.getByRole("button", { name: "certificate has expired" }).click();
        await page.getByRole("button", { name: "It helped" }).click();
        await expect.poll(async () => (await server.cairn.knowledge.get({ projectPath: SHOP, id: "certificate" })).successes).toBe(1);
        await page.getByRole("button", { name: "Edit" }).click();
        await page.getByRole("dialog").getByLabel("Answer").fill("Renew it with certbot.");
        await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
        await page.getByText("Renew it with certbot.").waitFor();
        expect(await server.cairn.knowledge.get({ projectPath: SHOP, id: "certificate" })).toMatchObject({
          answer: "Renew it with certbot.",
          uses: 2,
        });
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByText("Knowledge deleted.").waitFor();
        await expect(server.cairn.knowledge.get({ projectPath: SHOP, id: "certificate" })).rejects.toThrow();
        await page.getByRole("button", { name: "Undo" }).click();
        await page.getByText("Knowledge restored.").waitFor();
        expect(await server.cairn.knowledge.get({ projectPath: SHOP, id: "certificate" })).toMatchObject({ successes: 1 });
        await page.getByRole("link", { name: "shared" }).click();
        await page.getByRole("link", { name: "team-faq.csv" }).click();
        await page.getByRole("button", { name: "Who reviews migrations?" }).waitFor();
      }));

    it("shows code with usages and similar code", () =>
      visit(`#/code?${IN_SHOP}`, async (page) => {
        await page.getByText("6 files").waitFor();
        await page.getByLabel("Search code").fill("roundToCents");
        await page
          .getByRole("link", { name: "src/cart/round.ts:1" })
          .or(page.getByRole("link", { name: "src/cart/round.ts:2" }))
          .first()
          .click();
        await page.getByText("Rounds half away from zero").waitFor();
        await page.getByLabel("Usages of").fill("roundToCents");
        await page.getByRole("region", { name: "Usages" }).getByRole("link", { name: "src/cart/total.ts:5" }).waitFor();
        await page.getByRole("button", { name: "Similar code" }).click();
        await page.getByRole("region", { name: "Similar code" }).getByRole("article").first().waitFor();
      }));

    it("shows why an index job skipped a file, which files are indexed, and asks a running job to end", async () => {
      const running = { jobId: "0b0e1f6c-running", status: "running", phase: "sending", filesProcessed: 3, filesTotal: 9 } as const;
      const report = (change: object) => {
        const updatedAt = new Date().toISOString();
        const lists = { counts: { indexed: 3 }, skipped: {}, skippedFiles: [], failedFiles: [] };
        return server.cairn.code.report({
          projectPath: SHOP,
          report: { ...running, ...lists, startedAt: updatedAt, updatedAt, ...change },
        });
      };
      await visit(`#/code?${IN_SHOP}`, async (page) => {
        const jobs = page.getByRole("region", { name: "Index jobs" });
        await jobs.getByText("6 indexed, 1 failed").waitFor();
        await jobs.getByText("dist/ in .gitignore").waitFor();
        await jobs.getByLabel("Find a skipped file").fill("orders");
        await jobs.getByText("4.8 MB").waitFor();
        expect(await jobs.getByText("dist/ in .gitignore").count()).toBe(0);
        await jobs.getByLabel("Find a skipped file").fill("dist/bundle/main.js");
        await jobs.getByText("dist/ in .gitignore").waitFor();
        await page.getByRole("img", { name: /Files by language and size: typescript/ }).waitFor();
        const files = page.getByRole("region", { name: "Indexed files" });
        await files.getByLabel("Find an indexed file").fill("webhook");
        await expect.poll(() => files.getByRole("row").count()).toBe(2);
        await files.getByRole("link", { name: "src/pay/webhook.py" }).waitFor();
        await report({});
        await jobs.getByText("3 of 9 files").waitFor();
        await jobs.getByRole("button", { name: "Cancel" }).click();
        await jobs.getByRole("button", { name: "Cancelling…" }).waitFor();
        expect(await report({})).toEqual({ cancelRequested: true });
        await report({ status: "cancelled", finishedAt: new Date().toISOString() });
        await jobs.getByText("cancelled", { exact: true }).waitFor();
      });
    });

    it("draws a run, goes back in time and shows what changed", () =>
      visit("#/runs", async (page) => {
        await page.getByRole("link", { name: "paused" }).click();
        await page.getByRole("link", { name: "refund-17" }).click();
        await page.getByRole("img", { name: /assess 3 times/ }).waitFor();
        await page.getByText("Refund 250 to customer 17?").first().waitFor();
        await page.getByText("State after step 5").waitFor();
        const steps = page.getByRole("region", { name: "Steps" });
        expect(await steps.locator("a > b").allTextContents()).toEqual(["approve", "assess", "assess", "assess", "Run"]);
        await steps.getByText("asked a question").waitFor();
        await page.getByRole("slider", { name: "Time" }).press("ArrowLeft");
        await page.getByText("State after step 4").waitFor();
        await page.getByRole("group", { name: "State" }).locator("li.changed", { hasText: "checks" }).waitFor();
        expect(page.url()).toContain("at=4");
      }));

    it("answers a paused run, which a process with the graph then continues", () =>
      visit("#/runs?run=refund-17", async (page) => {
        await page.getByRole("heading", { name: "Refund 250 to customer 17?" }).waitFor();
        await page.getByText("No process with this graph is listening").waitFor();
        await page.getByText(/cairn run work/).waitFor();
        await page.getByLabel("Answer for approve").fill('{"by": "support", "ok": true}');
        await page.getByText("sent as JSON").waitFor();
        await page.getByRole("button", { name: "Answer", exact: true }).click();
        await page.getByText("Answer stored. A worker that has the graph continues the run.").waitFor();
        await page.getByText("answered", { exact: true }).first().waitFor();
        const { store } = server.cairn.runs;
        expect((await store.getRun("refund-17"))?.status).toBe("answered");
        await page.getByRole("region", { name: "Steps" }).getByText('{"by":"support","ok":true}').waitFor();
        const { state } = await refund.resume("refund-17", { store });
        expect(state).toMatchObject({ customer: "customer 17", approvedBy: "support", paid: true });
      }));

    it("forks a run from an earlier step, and resumes a failed one", () =>
      visit("#/runs?run=refund-15&at=3", async (page) => {
        await page.getByRole("button", { name: "Fork from step 3" }).click();
        await page.getByRole("link", { name: "forked from refund-15 at step 3" }).waitFor();
        const { runs } = await server.cairn.runs.list({ status: "queued" });
        expect(runs).toMatchObject([{ parent: { runId: "refund-15", sequence: 3 } }]);
        await page.goto(`${server.url}/#/runs?run=refund-16`);
        await page.getByRole("button", { name: "Resume" }).click();
        await page.getByText("queued", { exact: true }).first().waitFor();
        expect((await server.cairn.runs.store.getRun("refund-16"))?.status).toBe("queued");
      }));

    it("shows the failures of a run with their attempts, and deletes the run", () =>
      visit("#/runs?run=refund-16", async (page) => {
        await page.getByText("attempt 2").waitFor();
        await page.getByText("The bank refused the account").first().waitFor();
        await settle(page);
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Delete run" }).click();
        await page.getByText("Run deleted.").waitFor();
        const { runs } = await server.cairn.runs.list({});
        expect(runs.map(({ runId }) => runId)).not.toContain("refund-16");
        await page.goto(`${server.url}/#/runs?run=refund-15`);
        await page.getByRole("heading", { name: "refund-15" }).waitFor();
        await settle(page); // the graph and the state are read as well
        await server.cairn.runs.store.deleteRun("refund-15");
        await page.getByText("The run refund-15 was deleted.").waitFor();
      }));

    it("requeues a dead letter, and takes, verifies and restores snapshots", () =>
      visit("#/systems", async (page) => {
        await page.getByText("-1 cents cannot be booked").waitFor();
        await page.getByRole("button", { name: "Requeue" }).click();
        await page.getByText("Message pay-7 requeued. It is pending again.").waitFor();
        const [component] = (await server.cairn.systems.get({ systemId: "bank" })).components;
        expect(component?.ports).toMatchObject([{ dead: 0, pending: 1 }]);
        await page.getByRole("button", { name: "Take a snapshot" }).click();
        await page.getByText("Snapshot taken.").waitFor();
        await page.getByRole("button", { name: "Verify" }).first().click();
        await page.getByText("sound").waitFor();
        await page.getByRole("button", { name: "Restore" }).last().click();
        await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
        await page.getByText("Snapshot restored.").waitFor();
        const [restored] = (await server.cairn.systems.get({ systemId: "bank" })).components;
        expect(restored?.ports).toMatchObject([{ dead: 1 }]);
      }));

    it("shows the doctor's findings, databases, embeddings and backups, and revokes a key", () =>
      visit("#/health", async (page) => {
        await page
          .getByRole("region", { name: "Doctor" })
          .getByText(/healthy|needs attention/)
          .waitFor();
        await page
          .getByRole("region", { name: "Databases" })
          .getByText(/SQLite|PostgreSQL/)
          .first()
          .waitFor();
        await page.getByRole("region", { name: "Embeddings" }).getByRole("cell", { name: "hash" }).first().waitFor();
        const calls = page.getByRole("region", { name: "Recent calls" });
        await calls.getByRole("cell", { name: "project_list" }).first().waitFor();
        await page.getByRole("region", { name: "Keys" }).getByRole("button", { name: "Revoke" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
        await page.getByText("Key revoked.").waitFor();
        expect(await server.cairn.keys.list()).toEqual([]);
        await fetch(`${server.url}/v1/checkpoint/get`, {
          method: "POST",
          headers: { ...bearer(TEST_TOKEN), "content-type": "application/json" },
          body: JSON.stringify({ project_path: SHOP, id: "never" }),
        });
        await calls.getByLabel("only failures").check();
        await calls
          .getByRole("row", { name: /checkpoint_get .*not_found/ })
          .first()
          .waitFor();
      }));

    it("examines everything on request, backs up what is in files, and embeds code again", () =>
      visit("#/health", async (page) => {
        await page.getByRole("button", { name: "Run all checks" }).click();
        await page.getByRole("region", { name: "Doctor" }).getByText("all checks,").waitFor();
        if (name === "SQLite") {
          await page.getByRole("button", { name: "Back up everything" }).click();
          await page.getByText("Backup made.").waitFor();
          expect(await server.cairn.backups.list()).toHaveLength(1);
        } else await page.getByText("pg_dump --format=custom").waitFor();
        await page.goto(`${server.url}/#/code?${IN_SHOP}`);
        await page.getByRole("button", { name: "Re-embed" }).click();
        await page.getByText("Re-embedding started. It runs in the background.").waitFor();
        const { embeddings, chunks } = await server.cairn.code.stats({ projectPath: SHOP });
        expect(embeddings).toMatchObject([{ model: "hash", isCurrent: true, vectors: chunks }]);
      }));
  });
}
