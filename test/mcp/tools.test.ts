import { expect, it } from "vitest";
import { edgeOperations } from "../../src/cli/edge-operations.ts";
import { DEFAULT_TOOLSETS } from "../../src/mcp/server.ts";
import { chooseOperations, toolOf } from "../../src/mcp/tools.ts";
import { operations as served } from "../../src/operations.ts";
import { countTokens } from "../../src/text/tokens.ts";

/** What `cairn mcp` offers; a server has fewer. */
const operations = edgeOperations(served);

it("costs a model at most 4,000 tokens to know all tools that are offered unasked", async () => {
  const tools = chooseOperations(operations, DEFAULT_TOOLSETS).map((operation) => toolOf(operation, "/home/someone/project"));
  expect(await countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(4_000);
});

it("describes every operation in JSON Schema that says no more than needed", () => {
  for (const operation of operations) {
    const tool = toolOf(operation);
    expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(tool.outputSchema).toMatchObject({ type: "object" });
    expect(JSON.stringify(tool)).not.toMatch(/\$schema|9007199254740991|"minLength":0/);
    expect(tool.title).toMatch(/^[A-Z][a-z ]+$/);
  }
});
