import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT_ATTENTION, EXIT_CODE } from "../src/cli/exit-code.ts";
import { SETTINGS, type Setting } from "../src/config/settings.ts";
import { type ErrorCode, WIRE_NAME } from "../src/model/errors.ts";
import { LIMITS } from "../src/model/limits.ts";
import { builtCommand } from "./cli/stage.ts";

const root = resolve(import.meta.dirname, "..");
const pages = ["README.md", ...readdirSync(join(root, "docs")).flatMap((file) => (file.endsWith(".md") ? [join("docs", file)] : []))];
const decisions = readdirSync(join(root, "docs/adr")).map((file) => join("docs/adr", file));
const read = (page: string) => readFileSync(join(root, page), "utf8");

/** Returns the page with its generated section up to date. `npm run docs` writes it. */
function withSection(page: string, name: string, lines: readonly string[]): string {
  const marked = new RegExp(`(<!-- ${name}: .*? -->\n)[\\s\\S]*?(<!-- end -->)`);
  expect(read(page)).toMatch(marked);
  return read(page).replace(marked, (_, start, end) => `${start}\n${lines.join("\n")}\n\n${end}`);
}

type Row = readonly string[];

/** Returns a table with aligned columns, as the formatter requires. */
function tableLines(head: Row, rows: readonly Row[]): string[] {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column]!.length)));
  const line = (row: Row) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  const [first, ...rest] = cells;
  return [line(first!), line(widths.map((width) => "-".repeat(width))), ...rest.map(line)];
}

describe("the tables in the docs", () => {
  it("list every setting", async () => {
    const lines = tableLines(["key", "variable", "default", "project file", "what it is"], SETTINGS.map(settingRow));
    await expect(withSection("docs/configuration.md", "settings", lines)).toMatchFileSnapshot(join(root, "docs/configuration.md"));
  });

  it("list every limit, with the reason from the source", async () => {
    const source = readFileSync(join(root, "src/model/limits.ts"), "utf8");
    const reasons = new Map([...source.matchAll(/\/\*\* ([^*]*) \*\/\n {2}(\w+):/g)].map(([, reason, name]) => [name, reason]));
    const rows = Object.entries(LIMITS).map(([name, value]) => [`\`${name}\``, withUnit(name, value), reasons.get(name) ?? ""]);
    const lines = tableLines(["limit", "value", "why"], rows);
    expect(reasons.size).toBeGreaterThan(5);
    await expect(withSection("docs/limits.md", "limits", lines)).toMatchFileSnapshot(join(root, "docs/limits.md"));
  });

  it("list every exit code", async () => {
    const codes = Object.entries(EXIT_CODE).sort(([, a], [, b]) => a - b);
    expect(new Set(codes.map(([, code]) => code)).size).toBe(codes.length);
    const rows = codes.map(([code, exit]) => [String(exit), `\`${WIRE_NAME[code as ErrorCode]}\``, WHEN[code as ErrorCode]]);
    const attention = [
      String(EXIT_ATTENTION),
      "",
      "success, with findings: `cairn doctor`, a `verify` or `check` that found damage, an import that skipped records, an index with files that failed",
    ];
    const lines = tableLines(["exit code", "error code", "when"], [["0", "", "success"], ...rows, attention]);
    await expect(withSection("docs/cli.md", "exit codes", lines)).toMatchFileSnapshot(join(root, "docs/cli.md"));
  });
});

describe("the decisions", () => {
  const files = readdirSync(join(root, "docs/adr")).filter((file) => /^\d{4}-.*\.md$/.test(file));

  it("tables: the index lists every decision", async () => {
    const rows = files.map((file) => {
      const text = read(join("docs/adr", file));
      const [, number, title] = /^# (\d{4}): (.+)$/m.exec(text) ?? [];
      const status = /^Status: (.+)$/m.exec(text)?.[1] ?? "";
      return [number ?? "", `[${title}](${file})`, /^Date: (\S+)$/m.exec(text)?.[1] ?? "", status];
    });
    const lines = tableLines(["number", "decision", "date", "status"], rows);
    await expect(withSection("docs/adr/README.md", "decisions", lines)).toMatchFileSnapshot(join(root, "docs/adr/README.md"));
  });

  it.each(files)("%s has its number, date, status, context, decision and consequences", (file) => {
    const text = read(join("docs/adr", file));
    expect(text).toMatch(new RegExp(`^# ${file.slice(0, 4)}: \\S.+\n\nDate: \\d{4}-\\d\\d-\\d\\d\nStatus: (accepted|superseded)`));
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(["Context", "Decision", "Consequences"]);
  });
});

function settingRow(setting: Setting): Row {
  const fallback =
    { data_dir: "`~/.cairn`", state_dir: "`./.state`" }[setting.key] ??
    (setting.fallback === undefined ? "" : `\`${JSON.stringify(setting.fallback)}\``);
  const notes = [
    setting.description,
    setting.choices ? `One of ${setting.choices.join(", ")}.` : "",
    setting.secret ? "Secret: masked in every output." : "",
  ];
  const variables = setting.envNames.map((name) => `\`${name}\``).join(", ");
  return [`\`${setting.key}\``, variables, fallback, setting.fromProject ? "any" : "trusted", notes.filter(Boolean).join(" ")];
}

function withUnit(name: string, value: number): string {
  const number = value.toLocaleString("en-US");
  if (name.endsWith("Ms")) return `${(value / 1_000).toLocaleString("en-US")} s`;
  if (/Chars$/.test(name)) return `${number} characters`;
  return /Bytes$/.test(name) ? `${number} bytes` : number;
}

const WHEN: Record<ErrorCode, string> = {
  internal: "a fault in Cairn; also a Node version that is too old",
  invalid_input: "an invalid flag, value, command or setting",
  not_found: "the record, project or file does not exist",
  conflict: "the call contradicts stored data",
  forbidden: "the caller may not do this",
  unauthorized: "a credential is missing or wrong",
  too_large: "the input is over a size limit",
  rate_limited: "too many calls; try again later",
  unavailable: "the storage or the port cannot be used now",
  timeout: "it took longer than its limit",
  cancelled: "Ctrl-C",
};

describe("the examples in the docs", () => {
  let folder: string;
  let main: string;
  beforeAll(() => {
    main = builtCommand();
    folder = mkdtempSync(join(tmpdir(), "cairn-docs-"));
    mkdirSync(join(folder, "bin"));
    symlinkSync(main, join(folder, "bin", "cairn"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const blocks = pages.flatMap((page) =>
    [...read(page).matchAll(/^```(sh|ts) runnable\n([\s\S]*?)^```$/gm)].map(([, language, code], index) => ({
      name: `${page} ${language} ${index + 1}`,
      language: language!,
      code: code!,
    })),
  );

  /** Returns the options of a process whose user works in `project` and has the folder above it as home. */
  function userOf(project: string) {
    const path = `${join(folder, "bin")}:${process.env.PATH}`;
    // The static model loads in milliseconds. A search continues without a model that is not loaded after 4 s, which
    // minilm may need on a busy machine.
    const env = { PATH: path, HOME: resolve(project, ".."), CAIRN_LOG_LEVEL: "warn", CAIRN_EMBEDDER_KIND: "static" };
    return { cwd: project, encoding: "utf8", env } as const;
  }

  it("are found", () => {
    expect(blocks.filter(({ language }) => language === "sh").length).toBeGreaterThan(3);
    expect(blocks.filter(({ language }) => language === "ts").length).toBeGreaterThan(0);
  });

  it.each(blocks.filter(({ language }) => language === "sh"))("run: $name", ({ name, code }) => {
    const home = mkdtempSync(join(folder, `${name.replace(/\W+/g, "-")}-`));
    const project = join(home, "project");
    mkdirSync(project, { recursive: true });
    spawnSync("git", ["init", "--quiet", project]);
    const { status, stderr } = spawnSync("bash", ["-e", "-o", "pipefail", "-c", code], {
      ...userOf(project),
      timeout: 280_000,
    });
    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
  });

  it.each(blocks.filter(({ language }) => language === "ts"))("run: $name", async ({ name, code }) => {
    const cache = join(root, ".cache", "docs");
    mkdirSync(cache, { recursive: true });
    const file = join(cache, `${name.replace(/\W+/g, "-")}.ts`);
    writeFileSync(file, code);
    await import(pathToFileURL(file).href);
  });

  it.each(["docs/runs.md", "docs/systems.md"])("run in order in one folder: %s", (page) => {
    const project = followedFolder(page);
    const fences = [...read(page).matchAll(/^```(\w+)(?: (.+))?\n([\s\S]*?)^```$/gm)];
    expect(fences.length).toBeGreaterThan(1);
    for (const [, language, info, code] of fences) {
      if (language === "js") {
        writeFileSync(join(project, info!), code!);
        continue;
      }
      expect(`${language} ${info}`).toBe("sh in order");
      for (const line of code!.trimEnd().split("\n")) {
        const [, command, expected = ""] = /^(.*?)(?:\s+# (.*))?$/.exec(line)!;
        const { status, stdout, stderr } = spawnSync("bash", ["-c", command!], { ...userOf(project), timeout: 120_000 });
        expect({ command, status, stderr: status === 0 ? "" : stderr }).toEqual({ command, status: 0, stderr: "" });
        // The comment after a program is its output, with an optional explanation.
        if (command!.startsWith("node ")) expect(expected.startsWith(stdout.trim()), `${command} printed: ${stdout}`).toBe(true);
        else expect(stdout.trim(), command).not.toBe("");
      }
    }
  });

  /** Returns a project with the packages that a page's programs import, and with nothing else. */
  function followedFolder(page: string): string {
    const project = join(mkdtempSync(join(folder, `${page.replace(/\W+/g, "-")}-`)), "project");
    mkdirSync(join(project, "node_modules"), { recursive: true });
    spawnSync("git", ["init", "--quiet", project]);
    symlinkSync(root, join(project, "node_modules", "cairn-memory"));
    symlinkSync(join(root, "node_modules", "@langchain"), join(project, "node_modules", "@langchain"));
    return project;
  }

  it.each(["docs/ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"])("name only existing source files: %s", (page) => {
    const named = [...read(page).matchAll(/`((?:src|test|scripts|bench)\/[\w./-]+)`/g)].map(([, path]) => path!);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("include the library reference, with a doc comment for every public export", () => {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/reference.mjs", "--check"], { cwd: root, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  it("link only to existing files", () => {
    for (const page of [...pages, ...decisions, "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
      for (const [, target] of read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g))
        expect(() => readFileSync(resolve(root, page, "..", target!)), `${page} → ${target}`).not.toThrowError(/ENOENT/);
  });
});
