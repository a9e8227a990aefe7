import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runCli } from "../../src/cli/run.ts";
import { ignoreRules } from "../../src/client/files/ignore-rules.ts";
import { staleCheck } from "../../src/client/files/stale.ts";
import { openRegularFile, readRegularFile } from "../../src/files/regular-file.ts";
import { stage } from "../cli/stage.ts";

const { cairn, project, folder, home, clear } = stage();
const env = { CAIRN_EMBEDDER_KIND: "none" };
afterAll(clear);
const fifo = join(folder, "fifo");
const endless = join(folder, "endless");
const sparse = join(folder, "sparse");
beforeAll(() => {
  execFileSync("mkfifo", [fifo]);
  symlinkSync("/dev/zero", endless);
  writeFileSync(sparse, "");
  truncateSync(sparse, 2 ** 40);
});
const NOT_REGULAR = /not a regular file/;

describe("a path that names a FIFO, a device or a huge sparse file", () => {
  it("is refused without being opened, with what it is", () => {
    expect(() => openRegularFile(fifo)).toThrow(/is a FIFO, not a regular file/);
    expect(() => openRegularFile(endless)).toThrow(/is a device, not a regular file/);
    expect(() => openRegularFile(folder)).toThrow(/is a folder, not a regular file/);
    expect(() => readRegularFile(sparse, 1_000)).toThrow(/has 1099511627776 bytes; at most 1000/);
  });

  it("does not hang a hook as its transcript", async () => {
    for (const path of [fifo, endless]) {
      const hook = { session_id: "s", transcript_path: path, cwd: project };
      const { code, stderr } = await cairn(["hook", "pre-compact"], { env, stdin: JSON.stringify(hook) });
      expect(code).toBe(0);
      expect(stderr).toMatch(NOT_REGULAR);
    }
    const hook = { session_id: "s", transcript_path: sparse, cwd: project };
    expect(await cairn(["hook", "pre-compact"], { env, stdin: JSON.stringify(hook) })).toMatchObject({ code: 0, stdout: "" });
  });

  it("does not hang an import, whatever is imported", async () => {
    for (const path of [fifo, endless])
      for (const line of [
        ["checkpoint", "import", path],
        ["database", "import", path],
        ["knowledge", "import", path],
      ]) {
        const { code, stderr } = await cairn(line, { env });
        expect([line[0], code]).toEqual([line[0], 2]);
        expect(stderr).toMatch(NOT_REGULAR);
      }
    expect((await cairn(["knowledge", "import", sparse], { env })).code).toBe(7);
    expect((await cairn(["database", "import", sparse], { env })).code).toBe(2);
  });

  it("does not fill the memory of an import that has no line breaks", async () => {
    const { code, stderr } = await cairn(["checkpoint", "import", sparse], { env });
    expect(code).toBe(2);
    expect(stderr).toMatch(/A line has more than/);
    const zeros = Readable.from(
      (function* () {
        for (;;) yield Buffer.alloc(1_000_000);
      })(),
    );
    expect(await withStdin(["checkpoint", "import", "-"], zeros)).toMatchObject({ code: 2 });
  });

  it("does not hang the index as a rule file or as git's data", async () => {
    const root = join(folder, "walked");
    mkdirSync(join(root, ".git", "info"), { recursive: true });
    execFileSync("mkfifo", [join(root, ".gitignore"), join(root, ".git", "HEAD"), join(root, "source.py")]);
    symlinkSync("/dev/zero", join(root, ".cairnignore"));
    symlinkSync(sparse, join(root, ".git", "info", "exclude"));
    expect((await ignoreRules(root)).ignores("anything", false)).toBe(false);
    const { code, stdout } = await cairn(["code", "index", root, "--wait"], { env });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/2 special/)]);
    expect(await staleCheck()(root, "source.py", "0".repeat(64))).toBe(true);
  });

  it("does not hang init, which leaves it alone", async () => {
    const root = join(folder, "initialised");
    mkdirSync(join(root, ".git"), { recursive: true });
    execFileSync("mkfifo", [join(root, ".mcp.json")]);
    const { code, stderr } = await cairn(["init"], { cwd: root });
    expect([code, stderr]).toEqual([2, expect.stringMatching(NOT_REGULAR)]);
  });

  it("does not hang the start as the user's own configuration", async () => {
    mkdirSync(join(home, ".cairn"), { recursive: true });
    execFileSync("mkfifo", [join(home, ".cairn", "config.json")]);
    const { code, stderr } = await cairn(["checkpoint", "list"], { env });
    rmSync(join(home, ".cairn", "config.json"));
    expect([code, stderr]).toEqual([2, expect.stringMatching(NOT_REGULAR)]);
  });
});

describe("a standard input that never ends", () => {
  it("does not make the agent wait for a hook", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const done = withStdin(["hook", "session-start"], new PassThrough());
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await done).toMatchObject({ code: 0, stderr: expect.stringMatching(/did not end within 10 s/) });
    } finally {
      vi.useRealTimers();
    }
  });

  it("is not read by a command that takes no input", async () => {
    expect(await withStdin(["checkpoint", "list"], new PassThrough())).toMatchObject({ code: 0 });
  });
});

async function withStdin(argv: readonly string[], stdin: Readable): Promise<{ readonly code: number; readonly stderr: string }> {
  let stderr = "";
  const sink = (take: (text: string) => void) =>
    new Writable({
      write(chunk, _encoding, done) {
        take(String(chunk));
        done();
      },
    });
  const code = await runCli(argv, {
    stdin,
    stdout: sink(() => {}),
    stderr: sink((text) => {
      stderr += text;
    }),
    env,
    cwd: project,
    home,
    now: () => new Date(),
    signal: new AbortController().signal,
  });
  return { code, stderr };
}
