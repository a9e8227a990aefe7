import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openerOf } from "../../src/cli/ui/open-browser.ts";
import { framedHash } from "../../src/model/ids.ts";
import { serverRecord } from "../../src/stores/file/server-record.ts";
import { removeFolder } from "../support/processes.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => removeFolder(s.folder));

const env = { CAIRN_EMBEDDER_KIND: "none", CAIRN_LOG_LEVEL: "silent", CAIRN_HTTP_PORT: "0" };
const STORAGE = framedHash("storage", "sqlite");
const record = () => join(s.home, ".cairn", "server.json");

/** Runs `cairn ui` until `use` is done with the link that it prints. */
async function withServer(use: (link: URL) => Promise<void>, ...args: string[]): Promise<void> {
  const stop = new AbortController();
  const ended = s.cairn(["ui", "--no-open", ...args], { env, signal: stop.signal });
  await expect.poll(() => existsSync(record())).toBe(true);
  const { url } = JSON.parse((await s.cairn(["ui", "--no-open", "--json", ...args], { env })).stdout);
  await use(new URL(url));
  stop.abort();
  const { stdout } = await ended;
  expect(stdout).toContain("Open this link in a browser:");
  expect(stdout).toContain("Stop with Ctrl-C.");
}

const exchange = async (link: URL) =>
  fetch(new URL("/session", link), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code: new URLSearchParams(link.hash.split("?")[1]).get("code") }),
  });

describe("cairn ui", () => {
  it("serves the console, and a second call finds that server and makes a link of its own", async () => {
    await withServer(async (link) => {
      expect(await (await fetch(new URL("/", link))).text()).toContain("<title>Cairn</title>");
      expect((await exchange(link)).status).toBe(200);
      expect((await exchange(link)).status).toBe(401);
      expect(JSON.parse(readFileSync(record(), "utf8"))).toEqual({
        url: link.origin,
        pid: process.pid,
        storage: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      if (process.platform !== "win32") expect(statSync(record()).mode & 0o777).toBe(0o600);
    });
    expect(existsSync(record())).toBe(false);
  });

  it("selects the project that --project names", async () => {
    await withServer(
      async (link) => expect(new URLSearchParams(link.hash.split("?")[1]).get("project")).toBe(s.project),
      "--project",
      join(s.project, "src"),
    );
  });

  it("starts a server when the record names a process that ended, another user's address or another host", async () => {
    for (const stale of [
      { url: "http://127.0.0.1:9", pid: 2 ** 22 + 1, storage: STORAGE },
      { url: "http://192.0.2.1:7483", pid: process.pid, storage: STORAGE },
      { url: 5 },
      "text",
    ]) {
      await s.cairn(["token"], { env });
      writeFileSync(record(), JSON.stringify(stale), { mode: 0o600 });
      expect(serverRecord({ dataDir: join(s.home, ".cairn"), storage: "sqlite" }).read()).toBeUndefined();
    }
  });

  it("opens no server of the same data folder that uses another storage", async () => {
    await withServer(async (link) => {
      const dataDir = join(s.home, ".cairn");
      const secret = "postgres://me:secret@localhost/other";
      expect(serverRecord({ dataDir, storage: "sqlite" }).read()).toBe(link.origin);
      expect(serverRecord({ dataDir, storage: secret }).read()).toBeUndefined();
      await serverRecord({ dataDir, storage: secret }).write(link.origin);
      expect(readFileSync(record(), "utf8")).not.toContain("secret");
      expect(serverRecord({ dataDir, storage: "sqlite" }).read()).toBeUndefined();
    });
  });

  it("opens no browser without a desktop", () => {
    expect(openerOf("linux", {})).toBeUndefined();
    expect(openerOf("linux", { DISPLAY: ":0" })).toEqual(["xdg-open"]);
    expect(openerOf("darwin", {})).toEqual(["open"]);
    expect(openerOf("darwin", { SSH_CONNECTION: "1 2 3 4" })).toBeUndefined();
    expect(openerOf("win32", {})).toEqual(["rundll32", "url.dll,FileProtocolHandler"]);
  });
});
