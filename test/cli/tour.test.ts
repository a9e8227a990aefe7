import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tourSteps } from "../../src/cli/tour/steps.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

const root = resolve(import.meta.dirname, "../..");

describe("the tour", () => {
  it("runs every step, and does not touch the data of the user", async () => {
    const { code, stdout, stderr } = await s.cairn(["tour", "--once"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const { title } of tourSteps) expect(stdout).toContain(title);
    expect(stdout).toMatch(/1\. good match +Cart totals .*\n +2\. no match/);
    expect(stdout).toMatch(/received 25 acknowledgements\.[\s\S]*Every acknowledged checkpoint is there/);
    expect(stdout).toMatch(/label … killed\n.*: print label, book courier, send e-mail … completed\n.*charged once/);
    expect(stdout).toMatch(/1\. Reinstall PostgreSQL\.[\s\S]*1\. Start PostgreSQL\./);
    expect(stdout).toMatch(/src\/payment\.ts/);
    expect(stdout).toContain("checkpoint_save");
    expect(existsSync(join(s.home, ".cairn", "projects"))).toBe(false);
  });

  it("is one JSON document with --json", async () => {
    const { stdout } = await s.cairn(["tour", "--once", "--json"]);
    expect(JSON.parse(stdout)).toEqual({ steps: tourSteps.map(({ title }) => title) });
  });

  it("continues to serve, on another port if the configured one is in use, and cleans up on Ctrl-C", async () => {
    const busy = createServer();
    const port = await new Promise<number>((done) => busy.listen(0, "127.0.0.1", () => done((busy.address() as { port: number }).port)));
    const child = spawn(process.execPath, [join(root, "scripts", "start.mjs"), "--set", `http.port=${port}`], {
      env: { PATH: process.env.PATH, HOME: s.home, TMPDIR: s.folder },
    });
    let stdout = "";
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const url = await new Promise<string>((found) => {
      child.stdout.on("data", (chunk) => {
        stdout += chunk;
        const page = /API page +(http:\S+)\/docs/.exec(stdout)?.[1];
        if (page && stdout.includes("Stop with")) found(page);
      });
    });
    expect(stdout).toContain(`Port ${port} is in use; serving on port ${new URL(url).port}.`);
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: expect.any(String) });
    const token = spawnSync("sh", ["-c", /Bearer \$\((.*?)\)/.exec(stdout.slice(stdout.indexOf("Or look around")))![1]!], {
      encoding: "utf8",
    });
    expect((await fetch(`${url}/v1/key/list`, { headers: { authorization: `Bearer ${token.stdout.trim()}` } })).status).toBe(200);
    const entry = JSON.parse(/(\{\n {4}"mcpServers"[\s\S]*?\n {2}\})/.exec(stdout)![1]!);
    expect(spawnSync("node", [entry.mcpServers.cairn.args[0], "--version"]).status).toBe(0);
    child.kill("SIGINT");
    const code = await new Promise((done) => child.on("close", done));
    busy.close();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(readdirSync(s.folder).sort()).toEqual(["home", "project"]); // its data is gone
  });
});
