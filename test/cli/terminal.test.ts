import { getEventListeners } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { progressBar } from "../../src/cli/terminal/progress-bar.ts";
import { relativeTime } from "../../src/cli/terminal/relative-time.ts";
import { escapeControls, styleFor } from "../../src/cli/terminal/style.ts";
import { table } from "../../src/cli/terminal/table.ts";
import { cutToWidth, textWidth, wrapText } from "../../src/cli/terminal/width.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeEach(() => {
  s = stage();
});
afterEach(() => s.clear());

const plain = styleFor({}, {});
const ESCAPE = "\u001B";

describe("output on a terminal", () => {
  it("is a table that fits the terminal, with ids that commands accept", async () => {
    await s.cairn([
      "checkpoint",
      "save",
      "A summary that is far too long for a narrow terminal, 中文字 and all",
      "--tags",
      "one",
      "--tags",
      "two",
    ]);
    for (const columns of [60, 80, 120, 200]) {
      const { stdout } = await s.cairn(["checkpoint", "list"], { terminal: true, columns, env: { NO_COLOR: "1" } });
      for (const line of stdout.trimEnd().split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(columns);
      expect(stdout).toMatch(/^[0-9a-f]{8} {2}just now {2}(?:unknown {4})?A summary/m);
    }
  });

  it("is not shortened in a file or a pipe", async () => {
    const summary = `Long ${"word ".repeat(40)}end`;
    await s.cairn(["checkpoint", "save", summary]);
    expect((await s.cairn(["checkpoint", "list"])).stdout).toContain(summary);
  });

  it("prints the flag for more records, and a message for an empty list", async () => {
    expect((await s.cairn(["checkpoint", "list"])).stdout).toBe("No checkpoints.\n");
    for (const summary of ["one", "two", "three"]) await s.cairn(["checkpoint", "save", summary]);
    const { stdout } = await s.cairn(["checkpoint", "list", "--limit", "2"]);
    expect(stdout).toContain("1 more: --limit 3");
  });

  it("cuts lines of code and wraps their places", async () => {
    const name = "aNameThatIsRatherLongForAFunction";
    writeFileSync(
      join(s.project, "retry.ts"),
      `export function ${name}(one: string, two: string, three: string, four: string) {\n  return one;\n}\n`,
    );
    await s.cairn(["code", "index", "--wait"]);
    const terminal = { terminal: true, columns: 60 };
    for (const argv of [
      ["search", "rather long"],
      ["usages", name],
      ["grep", "three"],
      ["similar", "a function with many parameters"],
    ]) {
      const { stdout } = await s.cairn(["code", ...argv], { ...terminal, env: { NO_COLOR: "1" } });
      expect(Math.max(...stdout.split("\n").map(textWidth))).toBeLessThanOrEqual(60);
      expect(stdout).toContain("…");
      expect((await s.cairn(["code", ...argv])).stdout).toContain("four: string");
    }
    expect((await s.cairn(["code", "context", "retry.ts"], terminal)).stdout).toContain("four: string");
  });

  it("fits help to the terminal", async () => {
    for (const columns of [60, 80])
      for (const { path, examples } of commands) {
        const { stdout } = await s.cairn([...path, "--help"], { terminal: true, columns, env: { NO_COLOR: "1" } });
        // Examples are copied, so they are not wrapped.
        const lines = stdout.split("\n").filter((line) => !examples.includes(line.trim()));
        expect({ path, columns, long: lines.filter((line) => textWidth(line) > columns) }).toEqual({ path, columns, long: [] });
      }
  });

  it("describes every flag in the words of the command line", async () => {
    for (const { path, summary, description = "", flags } of commands) {
      expect({ path, undescribed: flags.filter((flag) => flag.description === "").map(({ name }) => name) }).toEqual({
        path,
        undescribed: [],
      });
      for (const text of [summary, description, ...flags.map((flag) => flag.description)])
        expect(text).not.toMatch(/\b(?:checkpoint|knowledge|review|project)_[a-z]+\b/);
    }
  });

  it("names damaged records that a list and a search skipped", async () => {
    const { stdout: saved } = await s.cairn(["checkpoint", "save", "The lexer knows strings", "--json"]);
    const { id } = JSON.parse(saved) as { id: string };
    await s.cairn(["checkpoint", "save", "The lexer knows numbers"]);
    const projects = join(s.home, ".cairn", "projects");
    const file = readdirSync(projects).find((name) => name.endsWith(".db"))!;
    const database = await openSqlite({ path: join(projects, file) });
    await database.write((tx) => tx.all("UPDATE checkpoints SET summary = 'The lexer knows nothing' WHERE id = ?", id));
    database.close();
    for (const command of [["list"], ["search", "lexer"]]) {
      const { stdout } = await s.cairn(["checkpoint", ...command]);
      expect(stdout).toContain("The lexer knows numbers");
      expect(stdout).toContain(`Skipped 1 damaged: ${id} (its content does not match its checksum). Run cairn doctor --repair.`);
    }
  });

  it("prints the weights of a search that is asked to explain them", async () => {
    await s.cairn(["checkpoint", "save", "lexer handles nested quotes"]);
    const { stdout } = await s.cairn(["checkpoint", "search", "nested quotes of the lexer", "--explain"]);
    expect(stdout).toMatch(/Weights: semantic 0\.\d\d, keyword 0\.\d\d \(coverage .*keyword_lead .*\)\./);
    expect((await s.cairn(["checkpoint", "search", "nested quotes of the lexer"])).stdout).not.toContain("Weights");
  });

  it("prints the hits of a search, and why it was degraded", async () => {
    await s.cairn(["checkpoint", "save", "The lexer knows strings", "--description", "quotes and escapes"]);
    const { stdout } = await s.cairn(["checkpoint", "search", "lexer", "--mode", "keyword"]);
    expect(stdout).toMatch(
      /SCORE {2}ID +CREATED +SUMMARY +FOUND BY\n +\d\.\d\d {2}[0-9a-f-]{36} {2}just now {2}The lexer knows strings {2}keyword #1/,
    );
    const cut = await s.cairn(["checkpoint", "search", "lexer", "--mode", "keyword", "--max-tokens", "200"]);
    expect(cut.stdout).not.toContain("Limited to");
    await s.cairn(["checkpoint", "save", "The lexer knows numbers", "--description", "exponents ".repeat(200)]);
    await s.cairn(["checkpoint", "save", "The lexer knows names", "--description", "letters ".repeat(200)]);
    const short = await s.cairn(["checkpoint", "search", "lexer", "--mode", "keyword", "--max-tokens", "200"]);
    expect(short.stdout).toMatch(/Limited to 200 tokens: .* omitted\. Use cairn checkpoint get/);
    expect((await s.cairn(["checkpoint", "search", "zebra", "--mode", "keyword"])).stdout).toContain("No results.");
  });

  it("has colours only on a terminal, unless NO_COLOR or FORCE_COLOR is set", async () => {
    const coloured = async (options: { terminal?: boolean; env?: Record<string, string> }) =>
      (await s.cairn(["--help"], options)).stdout.includes(ESCAPE);
    expect(await coloured({})).toBe(false);
    expect(await coloured({ terminal: true })).toBe(true);
    expect(await coloured({ terminal: true, env: { NO_COLOR: "1" } })).toBe(false);
    expect(await coloured({ terminal: true, env: { TERM: "dumb" } })).toBe(false);
    expect(await coloured({ env: { FORCE_COLOR: "1" } })).toBe(true);
    expect(await coloured({ env: { FORCE_COLOR: "1", NO_COLOR: "1" } })).toBe(false);
  });

  it("cannot control the terminal", async () => {
    await s.cairn(["checkpoint", "save", `${ESCAPE}]0;owned\u0007 ${ESCAPE}[2J \u202Eabc`, "--description", `a${ESCAPE}[31mb\r\nc`]);
    const { stdout } = await s.cairn(["checkpoint", "list"]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to look for.
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u202E]/);
    const id = /[0-9a-f-]{36}/.exec(stdout)![0];
    expect((await s.cairn(["checkpoint", "get", id])).stdout).not.toContain(ESCAPE);
  });
});

describe("progress", () => {
  const host = (isTTY: boolean) => {
    let seconds = 0;
    const stderr = Object.assign(new PassThrough(), { isTTY, columns: 60 });
    const now = () => new Date(1_000 * seconds++);
    const interrupt = new AbortController();
    return {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr,
      env: {},
      cwd: "/",
      home: "/",
      now,
      signal: interrupt.signal,
      interrupt,
    };
  };
  const written = ({ stderr }: { stderr: PassThrough }) => String(stderr.read() ?? "");

  it("is drawn only on a terminal, and removed at the end", () => {
    const terminal = host(true);
    const bar = progressBar(terminal);
    bar.update(0, 10, "files");
    bar.update(5, 10, "files");
    bar.update(10, 10, "files");
    bar.clear();
    expect(written(terminal)).toMatch(/50 % 5\/10 files[\s\S]*100 % 10\/10 files[\s\S]*\[2K$/);
    const pipe = host(false);
    progressBar(pipe).update(1, 2);
    expect(written(pipe)).toBe("");
  });

  it("leaves room for the ^C of the terminal, and is removed by it", () => {
    const terminal = host(true);
    const bar = progressBar(terminal);
    for (const done of [1, 5]) bar.update(done, 10, "a long name of a file ".repeat(10));
    const drawn = written(terminal).replaceAll("\r", "").replaceAll("\u001B[2K", "");
    expect(drawn).toContain("50 % 5/10 a long name");
    expect(textWidth(`${drawn}^C`)).toBeLessThan(60);
    terminal.interrupt.abort();
    expect(written(terminal)).toBe("\r\u001B[2K");
  });

  it("does not listen for Ctrl-C any more after it was removed", () => {
    const terminal = host(true);
    for (let command = 0; command < 20; command++) {
      const bar = progressBar(terminal);
      bar.update(1, 2);
      bar.clear();
      progressBar(terminal).clear();
    }
    expect(getEventListeners(terminal.signal, "abort")).toEqual([]);
  });
});

describe("text width", () => {
  it("counts cells, not code units", () => {
    expect(["abc", "中文", "é", "e\u0301", "🪨", "👨‍👩‍👧", ""].map(textWidth)).toEqual([3, 4, 1, 1, 2, 2, 0]);
  });

  it("shortens any text to any width", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, width) => {
        expect(textWidth(cutToWidth(escapeControls(text), width))).toBeLessThanOrEqual(width);
      }),
    );
  });

  it("keeps Windows line breaks, and escapes control characters", () => {
    expect(escapeControls("a\r\n\tb\r")).toBe("a\n\tb");
    expect(escapeControls(`a\rb${ESCAPE}[2J`)).toBe("a\uFFFDb\uFFFD[2J");
  });

  it("wraps without losing a word", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{1,12}$/)), fc.integer({ min: 1, max: 30 }), (words, width) => {
        expect(wrapText(words.join(" "), width).join(" ")).toBe(words.join(" "));
      }),
    );
  });

  it("aligns numbers to the right", () => {
    expect(table([{ title: "N", flexible: false, right: true }], [["5"], ["50"]], undefined, plain)).toBe(" N\n 5\n50");
  });

  it("formats relative times", () => {
    const now = new Date("2026-01-10T12:00:00.000Z");
    const ago = (iso: string) => relativeTime(iso, now);
    expect(ago("2026-01-10T11:59:58.000Z")).toBe("just now");
    expect(ago("2026-01-10T11:55:00.000Z")).toBe("5 min ago");
    expect(ago("2026-01-10T09:00:00.000Z")).toBe("3 hours ago");
    expect(ago("2026-01-09T09:00:00.000Z")).toBe("1 day ago");
    expect(ago("2024-01-09T09:00:00.000Z")).toBe("2 years ago");
    expect(ago("2026-01-10T13:30:00.000Z")).toBe("in 1 hour");
    expect(ago("nonsense")).toBe("nonsense");
  });
});
