import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { logger } from "../../src/telemetry/logger.ts";
import { redactForLog } from "../../src/telemetry/redact.ts";

const secret = "A".repeat(43);

describe("redact", () => {
  it.each([
    [`key cairn_0f3a9c27b1d4_${secret} used`, "key cairn_0f3a9c27b1d4_[redacted] used"],
    ["Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"],
    ['{"authorization":"Token abc","a":1}', '{"authorization":"[redacted]","a":1}'],
    ['{"x-api-key":"a\\\\b","a":1}', '{"x-api-key":"[redacted]","a":1}'],
    ['{"msg":"{\\"password\\":\\"hunter2\\"}"}', '{"msg":"{\\"password\\":\\"[redacted]\\"}"}'],
    ["postgres://cairn:p%40ss@db:5432/x", "postgres://cairn:[redacted]@db:5432/x"],
    ["redis://:p:ss@db", "redis://:[redacted]@db"],
    ["host=db password=hunter2 user=x", "host=db password=[redacted] user=x"],
    ["sk-proj-abcdefghijklmnop1234", "[redacted:openai-key]"],
    ['{"token_count":12,"url":"http://127.0.0.1:7077/docs"}', '{"token_count":12,"url":"http://127.0.0.1:7077/docs"}'],
  ])("makes %s into %s", (text, clean) => expect(redactForLog(text)).toBe(clean));
});

describe("the log", () => {
  it("writes one JSON object a line, with causes, at or above its level", () => {
    const lines: string[] = [];
    const log = logger({ level: "warn", pretty: false, write: (line) => lines.push(line) });
    log.info({}, "not logged");
    log.error(
      { request_id: "r", err: new Error("outer", { cause: new Error("postgres://u:hunter2@db") }), headers: { authorization: "x y" } },
      "failed",
    );
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0]!);
    expect(line).toMatchObject({ level: "error", msg: "failed", request_id: "r", headers: { authorization: "[redacted]" } });
    expect(line.err.message).toBe("outer: postgres://u:[redacted]@db");
    expect(lines[0]).not.toContain("hunter2");
  });

  it("writes lines for people when asked", () => {
    const lines: string[] = [];
    logger({ pretty: true, write: (line) => lines.push(line) }).info(
      { operation: "checkpoint_save", key: `cairn_0f3a9c27b1d4_${secret}` },
      "done",
    );
    expect(lines[0]).toMatch(/info.*done.*operation=checkpoint_save key=cairn_0f3a9c27b1d4_\[redacted\]/);
  });

  /** Runs statements with a log in a process of its own, and returns what it wrote. */
  function runWithLog(statements: string): { readonly stdout: string; readonly messages: readonly string[] } {
    const module = join(import.meta.dirname, "../../dist/telemetry/logger.js");
    const script = `const { logger } = await import(${JSON.stringify(module)}); const log = logger({ level: "debug" }); ${statements}`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    const lines = stderr.split("\n").filter((line) => line !== "");
    return { stdout, messages: lines.map((line) => JSON.parse(line).msg as string) };
  }

  it("never writes to standard output", () => {
    expect(runWithLog('log.warn({ a: 1 }, "logged");')).toEqual({ stdout: "", messages: ["logged"] });
  });

  it("writes lines in their order, those about success after the current turn", () => {
    const { messages } = runWithLog(
      'log.info({}, "first"); log.debug({}, "second"); log.error({}, "third"); log.info({}, "fourth"); console.error(\'{"msg":"answer"}\');',
    );
    expect(messages).toEqual(["first", "second", "third", "answer", "fourth"]);
  });

  it("loses no line of a process that exits at once", () => {
    expect(runWithLog('log.info({}, "last"); process.exit(1);').messages).toEqual(["last"]);
    expect(runWithLog("for (let i = 0; i < 1_000; i++) log.info({}, String(i)); process.exit(0);").messages).toHaveLength(1_000);
  });
});
