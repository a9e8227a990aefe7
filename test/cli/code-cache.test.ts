import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { builtCommand, stage } from "./stage.ts";

let main: string;
let s: ReturnType<typeof stage>;
beforeAll(() => {
  main = builtCommand();
});
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

const folder = () => join(s.home, ".cache", "cairn", "code");
const isOwn = (name: string) => name.includes(".cjs-");
const coreFile = () => join(folder(), readdirSync(folder()).find((name) => name.startsWith("core-") && isOwn(name))!);
const list = (env: Record<string, string> = {}) =>
  spawnSync(process.execPath, [main, "checkpoint", "list"], {
    cwd: s.project,
    env: { PATH: process.env.PATH, HOME: s.home, CAIRN_EMBEDDER_KIND: "none", ...env },
    encoding: "utf8",
  });
const ANSWER = { status: 0, stdout: "No checkpoints.\n", stderr: "" };

describe("the code cache", () => {
  it("is written by the first start and kept by the next one", () => {
    expect(list()).toMatchObject(ANSWER);
    const written = readFileSync(coreFile());
    chmodSync(coreFile(), 0o400);
    expect(list()).toMatchObject(ANSWER);
    expect(readFileSync(coreFile()).equals(written)).toBe(true);
  });

  it.each([
    ["empty", () => Buffer.alloc(0)],
    ["cut", (code: Buffer) => code.subarray(0, code.length / 2)],
    [
      "changed in one byte",
      (code: Buffer) => Buffer.from(code).fill(code[code.length >> 1]! ^ 1, code.length >> 1, (code.length >> 1) + 1),
    ],
  ])("is ignored and replaced when it is %s", (_kind, damage) => {
    list();
    const whole = readFileSync(coreFile());
    writeFileSync(coreFile(), damage(whole));
    expect(list()).toMatchObject(ANSWER);
    expect(readFileSync(coreFile()).length).toBeGreaterThan(whole.length / 2);
    expect(list()).toMatchObject(ANSWER);
  });

  it("is not read from a folder or a file that others can write to", () => {
    mkdirSync(folder(), { recursive: true });
    chmodSync(folder(), 0o777);
    expect(list()).toMatchObject(ANSWER);
    expect(readdirSync(folder())).toEqual([]);
    chmodSync(folder(), 0o700);
    list();
    writeFileSync(coreFile(), "open to others");
    chmodSync(coreFile(), 0o666);
    expect(list()).toMatchObject(ANSWER);
    expect(readFileSync(coreFile(), "latin1")).not.toBe("open to others");
  });

  it("is not read through a symbolic link", () => {
    const elsewhere = join(s.folder, "elsewhere");
    mkdirSync(elsewhere, { mode: 0o700 });
    mkdirSync(join(s.home, ".cache", "cairn"), { recursive: true });
    symlinkSync(elsewhere, folder());
    expect(list()).toMatchObject(ANSWER);
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it("follows XDG_CACHE_HOME, and NODE_DISABLE_COMPILE_CACHE switches it off", () => {
    const cache = join(s.folder, "xdg");
    expect(list({ XDG_CACHE_HOME: cache, NODE_DISABLE_COMPILE_CACHE: "1" })).toMatchObject(ANSWER);
    expect(existsSync(cache)).toBe(false);
    expect(list({ XDG_CACHE_HOME: cache })).toMatchObject(ANSWER);
    expect(readdirSync(join(cache, "cairn", "code")).filter(isOwn)).not.toEqual([]);
    expect(existsSync(folder())).toBe(false);
  });

  it("is no condition: without a home that can be written, the command answers", () => {
    writeFileSync(join(s.home, ".cache"), "a file");
    expect(list()).toMatchObject(ANSWER);
  });
});
