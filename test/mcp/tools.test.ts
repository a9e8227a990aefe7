import { expect, it } from "vitest";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { DEFAULT_TOOLSETS } from "../../src/mcp/server.ts";
import { chooseOperations, toolOf } from "../../src/mcp/tools.ts";
import { open } from "../../src/open/open.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations as served } from "../../src/operations/list.ts";
import { countTokens } from "../support/o200k.ts";

/** What `cairn mcp` offers; a server has fewer. */
const operations = decorateOperations(served);

it("costs a model at most 2,000 tokens to know all tools that are offered unasked", async () => {
  const tools = chooseOperations(operations, DEFAULT_TOOLSETS).map((operation) => toolOf(operation, "/home/someone/project"));
  expect(countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(2_000);
});

it("describes every operation in JSON Schema that says no more than needed", () => {
  for (const operation of operations) {
    const tool = toolOf(operation);
    expect(tool.inputSchema).toMatchObject({ type: "object" });
    expect(tool.outputSchema).toMatchObject({ type: "object" });
    expect(JSON.stringify(tool)).not.toMatch(/\$schema|9007199254740991|"m(ax|in)(Length|imum|Items)"/);
  }
});

it("loads save, search and resume into the first request, and gives every other core tool words to be found by", () => {
  for (const operation of chooseOperations(operations, DEFAULT_TOOLSETS)) {
    const expected = ["checkpoint_save", "checkpoint_search", "checkpoint_resume"].includes(operation.name)
      ? { "anthropic/alwaysLoad": true }
      : { "anthropic/searchHint": expect.any(String) };
    expect({ name: operation.name, meta: toolOf(operation)._meta }).toEqual({ name: operation.name, meta: expected });
  }
});

it("adds a toolset to the core tools instead of replacing them", () => {
  const names = chooseOperations(operations, ["code"]).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["checkpoint_save", "checkpoint_update", "knowledge_search", "code_similar"]));
});

it("offers every verb on checkpoints and knowledge as a tool of some toolset", () => {
  const offered = chooseOperations(operations, ["core", "knowledge", "admin"]).map(({ name }) => name);
  const described = operations.map(({ name }) => name).filter((name) => /^(checkpoint|knowledge)_/.test(name));
  expect(offered).toEqual(expect.arrayContaining(described));
});

it("saves a checkpoint only for an existing folder on the client side", async () => {
  const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const save = (from: readonly (typeof operations)[number][], project_path: string) =>
    invoke(cairn, from.find(({ name }) => name === "checkpoint_save")!, { project_path, summary: "s" }, { caller: LOCAL_CALLER });
  const missing = `${import.meta.dirname}/not-there`;
  await expect(save(operations, missing)).rejects.toMatchObject({ code: "invalid_input", message: expect.stringContaining("no folder") });
  expect(await save(operations, import.meta.dirname)).toMatchObject({ summary: "s" });
  expect(await save(served, missing)).toMatchObject({ summary: "s" });
  await cairn.close();
});
