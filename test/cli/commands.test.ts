import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { flagsOf } from "../../src/cli/command.ts";
import { commandPath } from "../../src/cli/command-words.ts";
import { commands } from "../../src/cli/commands.ts";
import { EXIT_CODE } from "../../src/cli/exit-code.ts";
import { VERSION } from "../../src/model/version.ts";
import { operations } from "../../src/operations/list.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

describe("the command tree", () => {
  it("has a command for every operation, and no flag twice", () => {
    const paths = commands.map(({ path }) => path.join(" "));
    expect(new Set(paths).size).toBe(paths.length);
    for (const operation of operations.filter(({ cli }) => !cli?.hidden)) expect(paths).toContain(commandPath(operation).join(" "));
    for (const command of commands) {
      const names = flagsOf(command).map(({ name }) => name);
      expect(new Set(names).size, command.path.join(" ")).toBe(names.length);
      for (const name of command.positional) expect(names).toContain(name);
    }
  });

  it("shows examples in help that are real command lines", async () => {
    for (const command of commands) {
      const { stdout, code } = await s.cairn([...command.path, "--help"]);
      expect(code).toBe(0);
      expect(stdout).toContain(`cairn ${command.path.join(" ")}`);
      for (const example of command.examples) expect(stdout).toContain(example);
      for (const flag of flagsOf(command)) expect(stdout).toContain(`--${flag.name}`);
    }
  });

  it("helps at each level, by flag and by word", async () => {
    expect((await s.cairn([])).stdout).toContain("cairn <noun> <verb>");
    expect((await s.cairn(["--help"])).stdout).toBe((await s.cairn(["help"])).stdout);
    expect((await s.cairn(["checkpoint", "-h"])).stdout).toBe((await s.cairn(["help", "checkpoint"])).stdout);
    expect((await s.cairn(["help", "checkpoint", "save"])).stdout).toContain("--description");
    expect(JSON.parse((await s.cairn(["help", "checkpoint", "save", "--json"])).stdout).commands).toMatchObject([
      { command: "cairn checkpoint save", positional: ["summary"] },
    ]);
  });

  it("suggests the nearest command or flag", async () => {
    const says = async (...argv: string[]) => {
      const { code, stderr, stdout } = await s.cairn(argv);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      return stderr;
    };
    expect(await says("chekpoint", "list")).toContain('Did you mean "checkpoint"?');
    expect(await says("checkpoint", "lits")).toContain('Did you mean "checkpoint list"?');
    expect(await says("checkpoint")).toContain("needs one of: save, search, list, get, resume, update, delete");
    expect(await says("checkpoint", "list", "--lmit", "3")).toContain("Did you mean --limit?");
    expect(await says("help", "chekpoint")).toContain('Did you mean "checkpoint"?');
    expect(await says("zzzzzz")).not.toContain("Did you mean");
    expect(await says("checkpoint", "list", "-x")).toContain('Unknown flag "-x"');
    expect(await says("--limit", "3")).toContain("needs a command");
  });

  it("prints its version", async () => {
    expect((await s.cairn(["--version"])).stdout).toBe(`${VERSION}\n`);
    expect((await s.cairn(["-V"])).stdout).toBe(`${VERSION}\n`);
    expect(JSON.parse((await s.cairn(["--version", "--json"])).stdout)).toEqual({ version: VERSION });
  });
});

describe("config get", () => {
  it("prints the effective values and their sources", async () => {
    mkdirSync(join(s.home, ".cairn"));
    writeFileSync(join(s.home, ".cairn", "config.json"), '{"http":{"port":1234}}');
    const { stdout } = await s.cairn(["config", "get", "--set", "log.level=debug"], { env: { CAIRN_EMBEDDER_API_KEY: "hunter2" } });
    expect(stdout).toMatch(/http\.port +1234 +user file .*config\.json/);
    expect(stdout).toMatch(/log\.level +debug +flag --set/);
    expect(stdout).toMatch(/embedder\.api_key +\*+ +environment CAIRN_EMBEDDER_API_KEY/);
    expect(stdout).not.toContain("hunter2");
    const { settings } = JSON.parse((await s.cairn(["config", "get", "--json", "--storage", "memory"])).stdout);
    expect(settings).toContainEqual(expect.objectContaining({ key: "storage", value: "memory", source: "flag --storage" }));
  });

  it("rejects invalid configuration with exit code 2, also for other commands", async () => {
    for (const argv of [
      ["config", "get"],
      ["checkpoint", "list"],
    ]) {
      const { code, stderr } = await s.cairn(argv, { env: { CAIRN_HTTP_PORT: "many" } });
      expect(code).toBe(2);
      expect(stderr).toContain("http.port");
    }
    expect((await s.cairn(["config", "get", "--set", "port"])).stderr).toContain("--set takes key=value");
    expect((await s.cairn(["--help"], { env: { CAIRN_HTTP_PORT: "many" } })).code).toBe(0);
  });
});

describe("any command line at all", () => {
  const words = fc.oneof(
    fc.constantFrom(...commands.flatMap(({ path }) => path)),
    fc.constantFrom(...commands.flatMap((command) => flagsOf(command).map(({ name }) => `--${name}`)), "--", "-", "-h", "--no-json", "--="),
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.constantFrom(
      "__proto__",
      "constructor",
      "--__proto__",
      "--context",
      "__proto__=1",
      "--set",
      "http=1",
      "--limit=1e999",
      "--offset=-0",
    ),
  );
  // Servers and watchers would stay, and a hook never fails its agent, whatever it has to say on stderr; they have tests of their own.
  const apart = (argv: readonly string[]) => ["serve", "ui", "work", "mcp", "tour", "hook", "watch"].some((word) => argv.includes(word));

  it("ends with a known exit code and never prints a stack trace", async () => {
    const known = new Set([0, ...Object.values(EXIT_CODE)].filter((code) => code !== EXIT_CODE.internal));
    await fc.assert(
      fc.asyncProperty(fc.array(words, { maxLength: 7 }), async (argv) => {
        if (apart(argv)) return;
        const { code, stdout, stderr } = await s.cairn([...argv, "--storage", "memory"], { stdin: "piped" });
        expect(known).toContain(code);
        expect(code === 0 ? stderr : stdout).toBe("");
        expect(stdout + stderr).not.toMatch(/\n\s+at .*\.[jt]s/);
      }),
      { numRuns: 400 },
    );
  });

  it("with --json prints one JSON document, on stdout or on stderr", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(words, { maxLength: 6 }), async (argv) => {
        if (apart(argv)) return;
        const { code, stdout, stderr } = await s.cairn(["--json", ...argv.filter((one) => one !== "--no-json"), "--storage", "memory"], {
          stdin: "piped",
        });
        expect(() => JSON.parse(code === 0 ? stdout : stderr)).not.toThrow();
      }),
      { numRuns: 300 },
    );
  });
});
