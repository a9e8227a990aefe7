import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtCommand, stage } from "./stage.ts";

let main: string;
let s: ReturnType<typeof stage>;
beforeAll(() => {
  main = builtCommand();
  s = stage();
});
afterAll(() => s.clear());

const environment = () => ({ PATH: process.env.PATH, HOME: s.home, CAIRN_EMBEDDER_KIND: "none" });
const cairn = (args: readonly string[], input = "") =>
  spawnSync(main, args, { cwd: s.project, env: environment(), input, encoding: "utf8" });

describe("the cairn process", () => {
  it("is an executable of its own", () => {
    accessSync(main, constants.X_OK);
    expect(readFileSync(main, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    expect(cairn(["--version"])).toMatchObject({ status: 0, stderr: "" });
  });

  it("keeps what one process saved for the next", () => {
    const saved = cairn(["checkpoint", "save", "From the pipe", "--description", "-", "--json"], "details\n");
    expect(saved).toMatchObject({ status: 0, stderr: "" });
    const { id } = JSON.parse(saved.stdout);
    expect(JSON.parse(cairn(["checkpoint", "get", id, "--json"]).stdout)).toMatchObject({ id, description: "details" });
  });

  it("exits with the code of the error, without a stack trace", () => {
    expect(cairn(["checkpoint", "get", "nope"])).toMatchObject({ status: 3, stdout: "" });
    const wrong = cairn(["checkpoint", "list", "--limit", "many"]);
    expect(wrong).toMatchObject({ status: 2, stdout: "" });
    expect(wrong.stderr).toBe("cairn: --limit: must be a number\n");
  });

  it("prints no error when its reader closes the pipe", () => {
    for (let n = 0; n < 3; n++) cairn(["checkpoint", "save", "x".repeat(400), "--description", "d".repeat(9_000)]);
    const { stdout, stderr } = spawnSync(
      "bash",
      ["-c", `"${main}" checkpoint list --json --limit 100 | true; "${main}" --help | head -1`],
      {
        cwd: s.project,
        env: environment(),
        encoding: "utf8",
      },
    );
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^cairn \d/);
  });

  it("exits with 130 on Ctrl-C while it waits for input, and stores nothing", async () => {
    const before = JSON.parse(cairn(["checkpoint", "list", "--json"]).stdout).total;
    const child = spawn(main, ["checkpoint", "save", "half", "--description", "-"], { cwd: s.project, env: environment() });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    // It reads its input only after everything is loaded, so a full pipe that drains shows that it runs.
    await new Promise<void>((resolve) => child.stdin.write("x".repeat(1024 * 1024), () => resolve()));
    child.kill("SIGINT");
    const code = await new Promise((resolve) => child.on("exit", resolve));
    expect({ code, output }).toEqual({ code: 130, output: "cairn: Cancelled.\n" });
    expect(JSON.parse(cairn(["checkpoint", "list", "--json"]).stdout).total).toBe(before);
  });

  it("reports an unsupported version of Node", () => {
    const pretend = join(s.folder, "old-node.cjs");
    writeFileSync(pretend, `Object.defineProperty(process.versions, "node", { value: "18.20.0" });`);
    const { status, stderr, stdout } = spawnSync(process.execPath, ["-r", pretend, main, "checkpoint", "list"], {
      env: environment(),
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("cairn needs Node 20.19 or newer; this is 18.20.0.");
  });
});

describe("completion", () => {
  /** What bash would offer for this line. */
  function offered(line: string): string[] {
    const words = line.split(" ");
    const script = `
      eval "$("${main}" completion bash)"
      COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
      _cairn
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = spawnSync("bash", ["-c", script], { cwd: s.project, env: environment(), encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return stdout.split("\n").filter(Boolean);
  }

  it("works in bash, at each level", () => {
    expect(offered("cairn ch")).toEqual(["checkpoint"]);
    expect(offered("cairn checkpoint ")).toEqual(expect.arrayContaining(["save", "get", "list", "delete"]));
    expect(offered("cairn checkpoint list --s")).toEqual(expect.arrayContaining(["--sort-by", "--storage", "--set"]));
    expect(offered("cairn checkpoint list --sort-by ")).toEqual(["created_at", "updated_at"]);
    expect(offered("cairn checkpoint list --project ")).toContain("src");
    expect(offered("cairn completion ")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
  });

  it("names every command for zsh and fish too", () => {
    for (const shell of ["zsh", "fish"]) {
      const { stdout, status } = cairn(["completion", shell]);
      expect(status).toBe(0);
      for (const word of ["checkpoint save", "config get", "--sort-by"])
        expect(stdout).toContain(word.replace("--", shell === "fish" ? "" : "--"));
    }
    expect(cairn(["completion", "tcsh"])).toMatchObject({ status: 2, stderr: expect.stringContaining("must be one of bash, zsh, fish") });
  });
});
