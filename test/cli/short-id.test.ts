import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveShortIds } from "../../src/cli/short-id.ts";
import { CairnError } from "../../src/model/errors.ts";
import { operations } from "../../src/operations/list.ts";
import { stage } from "./stage.ts";

const operation = (name: string) => operations.find((one) => one.name === name)!;
const missing = new CairnError("not_found", "There is none.");

/** Answers list and get operations from fixed ids. */
function answers(ids: readonly string[]) {
  return async (name: string, input: Readonly<Record<string, unknown>>) => {
    if (name.endsWith("_get")) {
      if (ids.includes(String(input.id ?? input.run_id))) return {};
      throw missing;
    }
    const [items, field] = name === "run_list" ? ["runs", "run_id"] : ["checkpoints", "id"];
    const start = Number(input.cursor ?? 0);
    const page = ids.slice(start, start + 2).map((id) => ({ [field!]: id }));
    return { [items!]: page, ...(start + 2 < ids.length && { next_cursor: String(start + 2) }) };
  };
}

describe("short ids", () => {
  const resolve = async (id: string, ids: readonly string[], name = "checkpoint_get") =>
    (await resolveShortIds(operation(name), { id }, answers(ids))).id;

  it("stand for the record whose id has this prefix, on any page", async () => {
    expect(await resolve("cc", ["aa11", "bb22", "cc33", "dd44"])).toBe("cc33");
    expect(await resolve("CC3", ["aa11", "bb22", "cc33"])).toBe("cc33");
  });

  it("name the candidates of an ambiguous prefix", async () => {
    await expect(resolve("a", ["ab1", "ac2", "bd3"])).rejects.toThrow('"a" is ambiguous: it matches ab1, ac2. Give more characters.');
  });

  it("count from the newest with latest and @2", async () => {
    expect(await resolve("latest", ["new", "old"])).toBe("new");
    expect(await resolve("@1", ["new", "old"])).toBe("new");
    expect(await resolve("@3", ["new", "old", "older"])).toBe("older");
    await expect(resolve("@4", ["new", "old", "older"])).rejects.toMatchObject({ code: "not_found" });
  });

  it("leave exact ids, full ids and unknown texts unchanged", async () => {
    expect(await resolve("ab", ["ab", "abc"])).toBe("ab");
    expect(await resolve("zz", ["ab"])).toBe("zz");
    const full = "6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c";
    const refuse = () => Promise.reject(new Error("no call is needed"));
    expect((await resolveShortIds(operation("checkpoint_get"), { id: full }, refuse)).id).toBe(full);
    expect((await resolveShortIds(operation("knowledge_save"), { id: "new" }, refuse)).id).toBe("new");
  });

  it("apply to runs too", async () => {
    const { run_id } = await resolveShortIds(operation("run_get"), { run_id: "night" }, answers(["nightly-42", "daily-1"]));
    expect(run_id).toBe("nightly-42");
  });
});

describe("short ids on the command line", () => {
  let s: ReturnType<typeof stage>;
  beforeEach(() => {
    s = stage();
  });
  afterEach(() => s.clear());

  it("are printed in tables and accepted by get, update, resume and delete", async () => {
    for (const summary of ["one", "two", "three"]) await s.cairn(["save", summary]);
    const { stdout } = await s.cairn(["ls"], { terminal: true, env: { NO_COLOR: "1" } });
    const short = /^([0-9a-f]{8}) {2}just now {2}two$/m.exec(stdout)![1]!;
    expect((await s.cairn(["checkpoint", "get", short])).stdout).toContain("two");
    expect((await s.cairn(["checkpoint", "get", "@3"])).stdout).toContain("one");
    expect((await s.cairn(["resume", "latest"])).stdout).toContain("three");
    expect((await s.cairn(["checkpoint", "delete", short])).code).toBe(0);
    expect((await s.cairn(["checkpoint", "get", short])).code).toBe(3);
  });
});
