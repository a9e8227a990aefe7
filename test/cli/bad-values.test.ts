import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command, Flag } from "../../src/cli/command.ts";
import { commands } from "../../src/cli/commands.ts";
import { EXIT_CODE } from "../../src/cli/exit-code.ts";
import { stage } from "./stage.ts";

let s: ReturnType<typeof stage>;
beforeAll(() => {
  s = stage();
});
afterAll(() => s.clear());

/** Something that each kind of flag must refuse, whatever the operation. */
const WRONG: Record<Flag["kind"], readonly string[]> = {
  text: ["nul\0byte", "lone\uD800surrogate", "x".repeat(200_000)],
  number: ["many", "NaN", "1e999", "-1.5", "0x10", ""],
  switch: [],
  list: ["nul\0byte", "lone\uD800surrogate", "x".repeat(200_000)],
  map: ["novalue", "=value", `${"k".repeat(5_000)}=v`, "k=nul\0byte"],
  json: ["{", "nonsense", "{'single': 1}"],
};

const operationsOnly = commands.filter(({ path }) => !["init", "hook", "mcp", "serve", "tour", "completion", "config"].includes(path[0]!));

/** A value that the flag takes, so that the wrong one is the only mistake. */
function plausible(flag: Flag): string[] {
  if (flag.choices) return [`--${flag.name}=${flag.choices[0]}`];
  return {
    text: [`--${flag.name}=x`],
    number: [`--${flag.name}=1`],
    switch: [],
    list: [`--${flag.name}=x`],
    map: [`--${flag.name}=k=v`],
    json: [`--${flag.name}={}`],
  }[flag.kind];
}

const required = (command: Command, except: Flag) =>
  command.flags.filter((flag) => flag.required && flag.name !== except.name).flatMap(plausible);

describe.each(operationsOnly.map((command) => ({ name: command.path.join(" "), command })))("cairn $name", ({ command }) => {
  it.each(command.flags.filter((flag) => WRONG[flag.kind].length > 0))("refuses wrong values of --$name", async (flag) => {
    const wrong = [...WRONG[flag.kind], ...(flag.choices ? ["no-such-choice"] : [])];
    for (const value of wrong) {
      const { code, stdout, stderr } = await s.cairn([
        ...command.path,
        ...required(command, flag),
        `--${flag.name}=${value}`,
        "--storage",
        "memory",
      ]);
      const shown = JSON.stringify(value.slice(0, 40));
      // A free text may also be refused for what is not there; never by a fault inside Cairn.
      expect(
        [EXIT_CODE.invalid_input, EXIT_CODE.not_found, EXIT_CODE.too_large, EXIT_CODE.conflict],
        `${shown}: ${stderr.slice(0, 300)}`,
      ).toContain(code);
      expect(stdout).toBe("");
      expect(stderr.length, "a message is for reading").toBeLessThan(3_000);
    }
  });

  it("reports which value is missing", async () => {
    for (const flag of command.flags.filter((one) => one.required)) {
      const { code, stderr } = await s.cairn([...command.path, ...required(command, flag), "--storage", "memory"]);
      expect(code).toBe(EXIT_CODE.invalid_input);
      expect(stderr).toContain(flag.name);
    }
    expect(command.summary).not.toBe("");
  });
});
